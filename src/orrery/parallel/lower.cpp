// Model + plan -> program. See program.hpp for what a program is. Steps: what each part of the model computes
// (lower_work.cpp) and what goes on beside it (lower_sides.cpp), how layers are shared out (lower_layers.cpp), the
// segments of each kind of chunk (lower_segments.cpp), what ends a step, memory (memory.cpp).
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/lower_parts.hpp"
#include "orrery/parallel/lower_segments.hpp"
#include "orrery/parallel/lowerer.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

namespace {

// A class of stages, or a kind of chunk, and its parts in order.
struct Known {
  std::vector<PartUse> shape;
  StageSizes sizes = {};  // of classes
};

// The place of `shape` in `known`, from the latest back; -1 where it is new.
std::int32_t place_of(std::span<const PartUse> shape, std::span<const Known> known) {
  for (std::size_t i = known.size(); i-- > 0;) {
    if (std::equal(shape.begin(), shape.end(), known[i].shape.begin(), known[i].shape.end())) {
      return static_cast<std::int32_t>(i);
    }
  }
  return -1;
}

}  // namespace

// One plan's way from work to program. What it needs while it is on it is kept for the next plan.
class PlanLowering {
 public:
  PlanLowering(Program& program, const LoweringContext& context, const Work& work)
      : program_(program),
        plan_(program.plan),
        context_(context),
        work_(work),
        parts_(work.parts),
        segments_(context_, parts_, work.sizes) {}

  // The classes of stages and what each stage needs of memory.
  void share_out() {
    const auto shares = layers_per_virtual_stage(context_.model, plan_);
    starts_.reserve(shares.size() + 1);
    starts_.push_back(0);
    for (const std::int64_t share : shares) { starts_.push_back(starts_.back() + share); }
    reserve();
    for (std::int64_t stage = 0; stage < plan_.pp; ++stage) {
      const std::size_t index = class_of(stage);
      program_.class_of_stage.push_back(static_cast<std::int32_t>(index));
      program_.memory.push_back(stage_memory(known_[index].sizes, program_.pipeline, stage, program_.job, plan_,
                                             context_.stack, context_.weight_element));
    }
  }

  // The same, without a look at what the plan shards and moves.
  [[nodiscard]] bool may_fit(const Leanest& leanest, const Capacity& capacity) {
    return std::all_of(program_.class_of_stage.begin(), program_.class_of_stage.end(), [&, stage = 0](auto c) mutable {
      const StageSizes& sizes = known_[static_cast<std::size_t>(c)].sizes;
      const LeastMemory least = least_memory(sizes, program_.pipeline, stage++, program_.job, plan_, leanest,
                                             context_.stack, context_.weight_element);
      return least.device <= capacity.device && least.together <= capacity.device + capacity.second_tier;
    });
  }

  // Everything else.
  void run() {
    program_.blocks.assign(work_.blocks.begin(), work_.blocks.end());
    add_sides(parts_, context_, work_);
    segments_.start();
    // A decoder's stages hand on what the encoder made as well.
    program_.transfer_bytes = (context_.model.encoder_layers > 0 ? 2.0 : 1.0) * context_.residual;
    const bool copies = plan_.tp > 1 && !plan_.sequence_parallel;
    program_.gathers_transfers = copies && context_.stack.scatter_transfers && !program_.job.is_inference();
    if (program_.gathers_transfers) { program_.transfer_bytes /= static_cast<double>(plan_.tp); }
    for (std::size_t i = 0; i < known_.size(); ++i) { lower_class(program_.classes[i], known_[i]); }
  }

 private:
  void reserve() {
    const auto stages = static_cast<std::size_t>(plan_.pp);
    constexpr std::size_t kUsualKinds = 4;  // both ends, and one or two kinds between
    program_.classes.clear();
    program_.chunks.clear();
    program_.class_of_stage.clear();
    program_.memory.clear();
    program_.classes.reserve(kUsualKinds);
    program_.chunks.reserve(kUsualKinds);
    program_.class_of_stage.reserve(stages);
    program_.memory.reserve(stages);
    known_.reserve(kUsualKinds);
    known_chunks_.reserve(kUsualKinds);
  }

  // The class of a stage: a known one when it has the same parts in the same order, a new one otherwise.
  std::size_t class_of(std::int64_t stage) {
    set_shape(stage);
    const std::int32_t place = place_of(shape_, known_);
    if (place >= 0) {
      ++program_.classes[static_cast<std::size_t>(place)].stages;
      return static_cast<std::size_t>(place);
    }
    known_.push_back({shape_, stage_sizes(shape_, work_.sizes)});
    RankClass& rank_class = program_.classes.emplace_back();
    rank_class.first_stage = stage;
    rank_class.stages = 1;
    return known_.size() - 1;
  }

  // Sets shape_ to the parts of all chunks of a stage.
  void set_shape(std::int64_t stage) {
    shape_.clear();
    for (std::int64_t c = 0; c < chunks_of(plan_); ++c) {
      if (c > 0) { shape_.push_back({PartUse::kNextChunk, 0}); }
      const std::int64_t q = virtual_stage(plan_, stage, c);
      if (q == 0) { shape_.push_back({work_.embedding, 1}); }
      append_layers(first_layer(q), first_layer(q + 1));
      if (q != last_virtual_stage()) { continue; }
      shape_.push_back({work_.head, 1});
      if (work_.further >= 0) { shape_.push_back({work_.further, context_.model.mtp_layers}); }
    }
  }

  void append_layers(std::int64_t begin, std::int64_t end) {
    for (const LayerRun& run : work_.runs) {
      if (begin >= end) { return; }
      if (run.end <= begin) { continue; }
      const std::int64_t until = std::min(end, run.end);
      shape_.push_back({run.part, until - begin});
      begin = until;
    }
  }

  [[nodiscard]] std::int64_t first_layer(std::int64_t q) const { return starts_[static_cast<std::size_t>(q)]; }
  [[nodiscard]] std::int64_t last_virtual_stage() const { return static_cast<std::int64_t>(starts_.size()) - 2; }

  void lower_class(RankClass& rank_class, const Known& known) {
    rank_class.chunks.reserve(static_cast<std::size_t>(chunks_of(plan_)));
    std::span<const PartUse> rest = known.shape;
    for (std::int64_t c = 0; c < chunks_of(plan_); ++c) {
      const auto end = std::find_if(rest.begin(), rest.end(), [](const PartUse& use) { return use.part < 0; });
      const auto uses = rest.first(static_cast<std::size_t>(end - rest.begin()));
      const std::int64_t q = virtual_stage(plan_, rank_class.first_stage, c);
      rank_class.chunks.push_back({first_layer(q), first_layer(q + 1) - first_layer(q), chunk_of(uses)});
      if (end != rest.end()) { rest = rest.subspan(uses.size() + 1); }
    }
    add_weights(rank_class, known);
    if (!program_.job.is_inference()) { lower_finish(rank_class); }
  }

  // The program of a chunk: a known one when it has the same parts in the same order, a new one otherwise.
  std::int32_t chunk_of(std::span<const PartUse> uses) {
    const std::int32_t place = place_of(uses, known_chunks_);
    if (place >= 0) { return place; }
    known_chunks_.push_back({{uses.begin(), uses.end()}});
    ChunkProgram& chunk = program_.chunks.emplace_back();
    const auto has = [&](std::int32_t part) {
      return std::any_of(uses.begin(), uses.end(), [part](const PartUse& use) { return use.part == part; });
    };
    chunk.has_embedding = has(work_.embedding);
    chunk.has_head = has(work_.head);
    segments_.lower(chunk, uses);
    return static_cast<std::int32_t>(program_.chunks.size()) - 1;
  }

  void add_weights(RankClass& rank_class, const Known& known) {
    rank_class.parameters = known.sizes.dense;
    rank_class.expert_parameters = known.sizes.expert;
    rank_class.frozen = known.sizes.frozen;
    rank_class.frozen_expert = known.sizes.frozen_expert;
  }

  void append_finish(Segment& segment, Block block) {
    if (!block.items.empty()) { segment.push_back({context_.add_block(std::move(block)), 1, -1, -1}); }
  }

  // Gradients that are reduced when the pipeline has ended, and those that two stages hold, which are summed over the
  // two when each has been summed over its replicas (Megatron-LM's order), so that the two stages, which meet in it,
  // have nothing left to do that the other's lateness could delay.
  void lower_finish(RankClass& rank_class) {
    if (plan_.zero < 2 && !plan_.reduces_under_backward()) {
      Block reduce{"gradient.reduce", {}};
      append_reduction(reduce, context_, rank_class.parameters, rank_class.expert_parameters);
      append_finish(rank_class.finish_reduce, std::move(reduce));
    }
    const Bytes element = context_.stack.gradient_reduce_element;
    const auto holds = [&](bool ChunkProgram::* what) {
      return std::any_of(rank_class.chunks.begin(), rank_class.chunks.end(),
                         [&](const Chunk& chunk) { return program_.program_of(chunk).*what; });
    };
    const bool has_table = holds(&ChunkProgram::has_embedding) || holds(&ChunkProgram::has_head);
    if (context_.copies_table() && work_.table > 0 && has_table) {
      append_finish(rank_class.finish_reduce, collective_block("embedding.reduce_tied", Collective::all_reduce,
                                                               GroupKind::embedding, work_.table * element));
    }
    const double owned = of_a_shard(1, rank_class);
    if (plan_.schedule == ScheduleKind::dualpipe && owned > 0) {
      append_finish(rank_class.finish_reduce, collective_block("gradient.reduce_mirrored", Collective::all_reduce,
                                                               GroupKind::mirror, owned * element));
    }
    append_optimizer(rank_class, owned);
  }

  // Trained weights of one rank where they are sharded from a ZeRO stage on.
  [[nodiscard]] double of_a_shard(int zero, const RankClass& rank_class) const {
    if (plan_.zero < zero) { return rank_class.parameters + rank_class.expert_parameters; }
    return rank_class.parameters / static_cast<double>(plan_.shards()) +
           rank_class.expert_parameters / static_cast<double>(plan_.expert_replicas());
  }

  void append_optimizer(RankClass& rank_class, double owned) {
    const Bytes element = context_.weight_element;
    if (context_.stack.gradient_norm) { append_finish(rank_class.finish, norm_block(owned)); }
    append_finish(rank_class.finish, optimizer_block(owned));
    if ((plan_.zero == 1 || plan_.zero == 2) && !context_.gathers_under_forward()) {
      Block gather{"weights.gather", {}};
      append_gather(gather, context_, rank_class.parameters * element, rank_class.expert_parameters * element);
      append_finish(rank_class.finish, std::move(gather));
    }
    if (plan_.offload.weights) {
      Block store{"weights.store", {}};
      append_transfer(store, store.name, of_a_shard(3, rank_class) * element);
      append_finish(rank_class.finish, std::move(store));
    }
  }

  static Item streamed(std::string_view name, Bytes bytes) {
    Item item;
    item.name = name;
    item.purpose = Purpose::optimizer;
    item.kernel.kind = hardware::KernelKind::stream;
    item.kernel.bytes = bytes;
    return item;
  }

  // Read every gradient, and sum one number over everybody.
  Block norm_block(double parameters) {
    Block block = collective_block("gradient.norm_sum", Collective::all_reduce, GroupKind::world, Bytes(4.0));
    block.items.insert(block.items.begin(), streamed("gradient.norm", parameters * context_.stack.gradient_element));
    return block;
  }

  // Read gradient, read and write master copy and moments, write the weight. State in the second tier streams in and
  // out beside it, both ways at once: what takes its time is one way's bytes.
  Block optimizer_block(double parameters) {
    const auto& stack = context_.stack;
    Block block{"optimizer", {}};
    const Bytes state = master_element(stack, context_.weight_element) + stack.moment_element;
    if (plan_.offload.optimizer) { append_transfer(block, "optimizer.stream", parameters * state, true); }
    const Bytes moved = stack.gradient_element + 2.0 * state + context_.weight_element;
    block.items.push_back(streamed("optimizer.step", parameters * moved));
    return block;
  }

  Program& program_;
  const Plan& plan_;
  const LoweringContext& context_;
  const Work& work_;
  std::vector<Part> parts_;
  SegmentLowering segments_;
  std::vector<std::int64_t> starts_;  // [virtual stage]: its first layer; and one behind the last
  std::vector<PartUse> shape_;
  std::vector<Known> known_;         // [class]
  std::vector<Known> known_chunks_;  // [chunk program]
};

Lowerer::Lowerer(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack)
    : model_(model), cluster_(cluster), stack_(stack) {}

const Work& Lowerer::work(const Job& job, const Plan& plan) {
  const auto [entry, is_new] = works_.try_emplace(work_key(model_, job, plan));
  if (is_new) { entry->second = lower_work(model_, stack_, job, plan); }
  return entry->second;
}

Lowered Lowerer::lower(const Job& job, const Plan& plan) {
  constexpr auto kEnough = infinite<Bytes>();
  return *lower_within(job, plan, {kEnough, kEnough});
}

void Lowerer::begin(const Job& job, const Plan& plan) {
  ORRERY_ASSERT(is_valid(model_, job, plan, cluster_.devices));
  program_.job = job;
  program_.plan = plan;
  program_.pipeline = {plan.schedule, plan.pp, chunks_of(plan), micro_batches(job, plan)};
}

bool Lowerer::may_fit(const Job& job, const Plan& plan, const Leanest& leanest, const Capacity& capacity) {
  begin(job, plan);
  const Work& shared = work(job, plan);
  const LoweringContext context = context_of(model_, stack_, program_.job, program_.plan, &program_.blocks);
  PlanLowering lowering(program_, context, shared);
  lowering.share_out();
  return lowering.may_fit(leanest, capacity);
}

std::optional<Lowered> Lowerer::lower_within(const Job& job, const Plan& plan, const Capacity& capacity) {
  begin(job, plan);
  const Work& shared = work(job, plan);
  const LoweringContext context = context_of(model_, stack_, program_.job, program_.plan, &program_.blocks);
  PlanLowering lowering(program_, context, shared);
  lowering.share_out();
  if (!capacity.holds(program_)) { return std::nullopt; }
  program_.mesh = make_mesh(cluster_, plan);
  lowering.run();
  return Lowered{program_, shared};
}

bool Capacity::holds(const Program& program) const {
  return std::all_of(program.memory.begin(), program.memory.end(), [this](const MemoryNeed& need) {
    return need.total() <= device && need.offloaded <= second_tier;
  });
}

Program lower(const workload::Model& model, const Job& job, const Plan& plan, const hardware::Cluster& cluster,
              const hardware::Stack& stack) {
  return Lowerer(model, cluster, stack).lower(job, plan).program;
}

}  // namespace orrery::parallel
