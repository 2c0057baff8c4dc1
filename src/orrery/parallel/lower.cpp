// Model + plan -> program. See program.hpp for what a program is. Steps: what each part of the model computes
// (lower_slice.cpp), the collectives and transfers overlapped with it (lower_overlapped.cpp), layers per virtual stage
// (lower_layers.cpp), the segments of each kind of chunk (lower_segments.cpp), the end of a step, memory (memory.cpp).
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/lower_optimizer.hpp"
#include "orrery/parallel/lower_parts.hpp"
#include "orrery/parallel/lower_segments.hpp"
#include "orrery/parallel/lowerer.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

namespace {

// The position of `shape` among `count` shapes, searched from the latest back. shape_at(i): the i-th.
template <class ShapeAt>
std::optional<std::size_t> position_of(std::span<const PartUse> shape, std::size_t count, ShapeAt shape_at) {
  for (std::size_t i = count; i-- > 0;) {
    const std::vector<PartUse>& known = shape_at(i);
    if (std::equal(shape.begin(), shape.end(), known.begin(), known.end())) { return i; }
  }
  return std::nullopt;
}

// Finds the parts of every stage.
class Partitioning {
 public:
  Partitioning(const LoweringContext& context, const LoweredSlice& slice, StagePartition& partition)
      : plan_(context.plan()), model_(context.model), slice_(slice), partition_(partition) {}

  // Keeps the partition if it is that of this plan.
  void run() {
    const StagePartition::Key key{&slice_,
                                  plan_.schedule,
                                  plan_.pp,
                                  plan_.vpp,
                                  plan_.first_stage_layers,
                                  plan_.last_stage_layers,
                                  plan_.recompute_layers,
                                  plan_.embedding_as_layer,
                                  plan_.head_as_layer};
    if (partition_.key == key) { return; }
    partition_.key = key;
    partition_.classes.clear();
    partition_.class_of_stage.clear();
    partition_.starts.assign(1, 0);
    for (const std::int64_t share : layers_per_virtual_stage(model_, plan_)) {
      partition_.starts.push_back(partition_.starts.back() + share);
    }
    for (std::int64_t stage = 0; stage < plan_.pp; ++stage) { partition_.class_of_stage.push_back(class_of(stage)); }
  }

 private:
  // The class of a stage: an existing one with the same parts in the same order, else a new one.
  RankClassId class_of(std::int64_t stage) {
    set_shape(stage);
    auto& classes = partition_.classes;
    const auto shape_at = [&](std::size_t i) -> const auto& { return classes[i].known.shape; };
    if (const auto position = position_of(shape_, classes.size(), shape_at)) {
      ++classes[*position].stages;
      return RankClassId(*position);
    }
    classes.push_back({{shape_, stage_sizes(shape_, slice_.sizes)}, stage, 1});
    return RankClassId(classes.size() - 1);
  }

  // Sets shape_ to the parts of all chunks of a stage.
  void set_shape(std::int64_t stage) {
    shape_.clear();
    const auto last = static_cast<std::int64_t>(partition_.starts.size()) - 2;
    for (std::int64_t c = 0; c < chunks_of(plan_); ++c) {
      if (c > 0) { shape_.push_back(kNextChunk); }
      const std::int64_t q = virtual_stage(plan_, stage, c);
      if (q == 0) {
        shape_.insert(shape_.end(), slice_.tower.begin(), slice_.tower.end());
        shape_.push_back({slice_.embedding, 1});
      }
      append_layers(first_layer(q), first_layer(q + 1));
      if (q != last) { continue; }
      shape_.push_back({slice_.head, 1});
      if (slice_.mtp) { shape_.push_back({slice_.mtp, model_.mtp_layers}); }
    }
  }

  // Layers of one chunk.
  void append_layers(std::int64_t begin, std::int64_t end) {
    const std::int64_t recomputed_end = begin + plan_.recompute_layers;  // where recompute applies to some layers
    for (const LayerRun& run : slice_.runs) {
      if (begin >= end) { return; }
      if (run.end <= begin) { continue; }
      const std::int64_t until = std::min(end, run.end);
      const std::int64_t recomputed =
          run.without_recompute ? std::clamp<std::int64_t>(recomputed_end - begin, 0, until - begin) : until - begin;
      if (recomputed > 0) { shape_.push_back({run.part, recomputed}); }
      if (recomputed < until - begin) { shape_.push_back({run.without_recompute, until - begin - recomputed}); }
      begin = until;
    }
  }

  [[nodiscard]] std::int64_t first_layer(std::int64_t q) const {
    return partition_.starts[static_cast<std::size_t>(q)];
  }

  const Plan& plan_;
  const workload::Model& model_;
  const LoweredSlice& slice_;
  StagePartition& partition_;
  std::vector<PartUse> shape_;
};

// Ranks that hold equal weights, and would each offload a copy of them.
double copies_of_dense(const Plan& plan) {
  return static_cast<double>(plan.zero < 3 ? plan.replicas() : plan.sharded_copies());
}
double copies_of_experts(const Plan& plan) { return static_cast<double>(plan.zero < 3 ? plan.expert_replicas() : 1); }

// Of offloaded weights that replicas load together the pool has one copy: the bytes by which a rank's own copy exceeds
// its part of that one.
Bytes shared_weights(const LoweringContext& context, const Plan& plan, const StageSizes& sizes) {
  if (!plan.offload.weights || !context.pool_multicasts) { return Bytes(0); }
  const auto stored = [&](double copies, double expert_copies) {
    return stored_weights(context.stack, plan, context.weight_element, sizes.dense_bytes / copies,
                          sizes.expert_bytes / expert_copies, sizes.dense / copies, sizes.expert / expert_copies);
  };
  return stored(1.0, 1.0) - stored(copies_of_dense(plan), copies_of_experts(plan));
}

// A rank's part of the sums that replicas reduce in a pool.
Bytes pooled_gradients(const LoweringContext& context, const Plan& plan, const StageSizes& sizes) {
  if (!plan.offload.gradients) { return Bytes(0); }
  const auto part = [](double elements, std::int64_t replicas) {
    return replicas > 1 ? elements / static_cast<double>(replicas) : 0.0;
  };
  return context.stack.gradients.reduce_element *
         (part(sizes.dense, plan.replicas()) + part(sizes.expert, plan.expert_replicas()));
}

}  // namespace

// Lowers one plan: from a lowered slice to a program.
class PlanLowering {
 public:
  PlanLowering(Program& program, const LoweringContext& context, const LoweredSlice& slice, StagePartition& partition)
      : program_(program), plan_(program.plan), context_(context), slice_(slice), partition_(partition) {}

  // Sets the classes of stages and the memory of each stage.
  void partition() {
    Partitioning(context_, slice_, partition_).run();
    clear();
    for (const auto& of : partition_.classes) {
      RankClass& rank_class = program_.classes.emplace_back();
      rank_class.first_stage = of.first_stage;
      rank_class.stages = of.stages;
    }
    program_.class_of_stage = partition_.class_of_stage;
    for (std::int64_t stage = 0; stage < plan_.pp; ++stage) {
      MemoryNeed need = stage_memory(sizes_of(stage), program_.pipeline, stage, program_.job, plan_, context_.stack,
                                     context_.weight_element);
      need.add_offloaded(hardware::TensorClass::weights, -1.0 * shared_weights(context_, plan_, sizes_of(stage)));
      need.add_offloaded(hardware::TensorClass::gradients, pooled_gradients(context_, plan_, sizes_of(stage)));
      program_.memory.push_back(need);
    }
  }

  // False only if no plan that differs in zero, shard and offload, up to `lowest_memory`, fits. Requires partition().
  [[nodiscard]] bool may_fit(const LowestMemory& lowest_memory, const Capacity& capacity) {
    Plan lean = plan_;
    lean.zero = lowest_memory.zero;
    lean.shard = 0;
    lean.offload = lowest_memory.offload;
    for (std::int64_t stage = 0; stage < plan_.pp; ++stage) {
      LeastMemory least = least_memory(sizes_of(stage), program_.pipeline, stage, program_.job, plan_, lowest_memory,
                                       context_.stack, context_.weight_element);
      least.together -= shared_weights(context_, lean, sizes_of(stage));
      if (least.device > capacity.device || least.together > capacity.device + capacity.second_tier) { return false; }
    }
    return true;
  }

  // Completes the program. Requires partition().
  void run() {
    program_.blocks.assign(slice_.blocks.begin(), slice_.blocks.end());
    const IdVector<PartId, Part> parts = with_overlapped_blocks(context_, slice_);
    SegmentLowering segments(context_, parts, slice_.sizes);
    // The stages of a decoder also send the encoder's output to the next stage.
    program_.transfer_bytes = (context_.model.encoder_layers > 0 ? 2.0 : 1.0) * context_.residual;
    const bool copies = plan_.tp > 1 && !plan_.sequence_parallel;
    const bool scatters = context_.stack.transfers.stages == hardware::StageTransfer::scattered;
    program_.aligned_reductions = context_.stack.overlap.aligned_reduce && plan_.pp > 1 &&
                                  !splits_backward(plan_.schedule) && !program_.job.is_inference();
    program_.gathers_transfers = copies && scatters && !program_.job.is_inference();
    if (program_.gathers_transfers) { program_.transfer_bytes /= static_cast<double>(plan_.tp); }
    auto of = partition_.classes.begin();
    for (RankClass& rank_class : program_.classes) { lower_class(rank_class, (of++)->known, segments); }
  }

 private:
  void clear() {
    const auto stages = static_cast<std::size_t>(plan_.pp);
    constexpr std::size_t kUsualKinds = 4;  // first and last stage, and one or two classes between
    program_.classes.clear();
    program_.chunks.clear();
    program_.memory.clear();
    program_.classes.reserve(kUsualKinds);
    program_.chunks.reserve(kUsualKinds);
    program_.memory.reserve(stages);
    known_chunks_.reserve(kUsualKinds);
  }

  [[nodiscard]] const StageSizes& sizes_of(std::int64_t stage) const {
    return partition_.classes[partition_.class_of_stage[static_cast<std::size_t>(stage)].index()].known.sizes;
  }

  [[nodiscard]] std::int64_t first_layer(std::int64_t q) const {
    return partition_.starts[static_cast<std::size_t>(q)];
  }

  void lower_class(RankClass& rank_class, const StageShape& known, SegmentLowering& segments) {
    rank_class.chunks.reserve(static_cast<std::size_t>(chunks_of(plan_)));
    std::span<const PartUse> rest = known.shape;
    for (std::int64_t c = 0; c < chunks_of(plan_); ++c) {
      const auto end = std::find_if(rest.begin(), rest.end(), [](const PartUse& use) { return !use.part; });
      const auto uses = rest.first(static_cast<std::size_t>(end - rest.begin()));
      const std::int64_t q = virtual_stage(plan_, rank_class.first_stage, c);
      rank_class.chunks.push_back({first_layer(q), first_layer(q + 1) - first_layer(q), chunk_of(uses, segments)});
      if (end != rest.end()) { rest = rest.subspan(uses.size() + 1); }
    }
    add_weights(rank_class, known);
    if (!program_.job.is_inference()) { lower_finish(rank_class, known.sizes); }
  }

  // The program of a chunk: an existing one with the same parts in the same order, else a new one.
  ChunkProgramId chunk_of(std::span<const PartUse> uses, SegmentLowering& segments) {
    const auto shape_at = [this](std::size_t i) -> const auto& { return known_chunks_[i]; };
    if (const auto position = position_of(uses, known_chunks_.size(), shape_at)) { return ChunkProgramId(*position); }
    known_chunks_.emplace_back(uses.begin(), uses.end());
    ChunkProgram& chunk = program_.chunks.emplace_back();
    const auto has = [&](OptionalPartId part) {
      return std::any_of(uses.begin(), uses.end(), [part](const PartUse& use) { return use.part == part; });
    };
    chunk.has_embedding = has(slice_.embedding);
    chunk.has_head = has(slice_.head);
    segments.lower(chunk, uses);
    return program_.chunks.last_id();
  }

  void add_weights(RankClass& rank_class, const StageShape& known) {
    rank_class.parameters = known.sizes.dense;
    rank_class.expert_parameters = known.sizes.expert;
    rank_class.frozen = known.sizes.frozen;
    rank_class.frozen_expert = known.sizes.frozen_expert;
  }

  void append_finish(Segment& segment, Block block) {
    if (!block.items.empty()) { segment.push_back({context_.add_block(std::move(block))}); }
  }

  // First gradients that are reduced when the pipeline has ended; then those of weights that two stages hold: these are
  // reduced over the two stages after each has reduced its own over the replicas (Megatron-LM's order). It comes last,
  // because the two stages wait for each other there.
  void lower_finish(RankClass& rank_class, const StageSizes& sizes) {
    if (!reduces_every_micro_batch(plan_, context_.stack) && !reduces_under_backward(plan_, context_.stack)) {
      Block reduce{"gradient.reduce", {}};
      append_reduction(reduce, context_, rank_class.parameters, rank_class.expert_parameters);
      append_finish(rank_class.finish_reduce, std::move(reduce));
    }
    const Bytes element = context_.stack.gradients.reduce_element;
    const auto holds = [&](bool ChunkProgram::* what) {
      return std::any_of(rank_class.chunks.begin(), rank_class.chunks.end(),
                         [&](const Chunk& chunk) { return program_.program_of(chunk).*what; });
    };
    const bool has_table = holds(&ChunkProgram::has_embedding) || holds(&ChunkProgram::has_head);
    if (context_.copies_table() && slice_.token_table > 0 && has_table) {
      append_finish(rank_class.finish_reduce, collective_block("embedding.reduce_tied", Collective::all_reduce,
                                                               GroupKind::embedding, slice_.token_table * element));
    }
    const double owned = of_a_shard(1, rank_class);
    if (plan_.schedule == ScheduleKind::dualpipe && owned > 0) {
      append_finish(rank_class.finish_reduce, collective_block("gradient.reduce_mirrored", Collective::all_reduce,
                                                               GroupKind::mirror, owned * element));
    }
    append_optimizer(rank_class, owned, sizes);
  }

  // Trained weights of one rank if they are sharded from ZeRO stage `zero` on.
  [[nodiscard]] double of_a_shard(int zero, const RankClass& rank_class) const {
    if (plan_.zero < zero) { return rank_class.parameters + rank_class.expert_parameters; }
    return rank_class.parameters / static_cast<double>(plan_.shards()) +
           rank_class.expert_parameters / static_cast<double>(plan_.expert_replicas());
  }

  void append_optimizer(RankClass& rank_class, double owned, const StageSizes& sizes) {
    rank_class.finish.reserve(4);
    const Bytes element = context_.weight_element;
    if (context_.stack.gradients.norm) { append_finish(rank_class.finish, norm_block(owned)); }
    append_finish(rank_class.finish,
                  optimizer_block(context_, rank_class.parameters, rank_class.expert_parameters, sizes.matrices));
    if (context_.owns_whole_tensors()) {
      append_broadcasts(rank_class, sizes.tensors);
    } else if ((plan_.zero == 1 || plan_.zero == 2) && !context_.gathers_under_forward()) {
      Block gather{"weights.gather", {}};
      append_gather(gather, context_, rank_class.parameters * element, rank_class.expert_parameters * element);
      append_finish(rank_class.finish, std::move(gather));
    }
    const double dense = rank_class.parameters, expert = rank_class.expert_parameters;
    const bool in_place =
        plan_.updates_on_host() && host_optimizer(context_.stack, plan_, element, dense, expert).weights == Bytes(0);
    if (plan_.offload.weights && !in_place) {
      Block store{"weights.store", {}};
      // Of a copy that replicas load together, each stores a part.
      const bool shares = context_.pool_multicasts;
      const double own = dense / (shares ? copies_of_dense(plan_) : 1.0);
      const double own_expert = expert / (shares ? copies_of_experts(plan_) : 1.0);
      const Bytes stored =
          stored_weights(context_.stack, plan_, element, own * element, own_expert * element, own, own_expert);
      // Shards that are the master copy are updated where they are fetched to.
      const bool is_master = weight_copies(context_.stack, element, plan_).stored > element;
      append_transfer(store, store.name, stored, is_master ? TierTransfer::both : TierTransfer::store);
      append_finish(rank_class.finish, std::move(store));
    }
  }

  // One broadcast of every owner of tensors, one after another: all of its tensors are one buffer.
  void append_broadcasts(RankClass& rank_class, const Tensors& tensors) {
    const auto append = [&](GroupKind group, std::int64_t ranks, double number, double weights) {
      const auto owners = std::min(ranks, static_cast<std::int64_t>(number));
      if (ranks <= 1 || owners < 1) { return; }
      const Bytes bytes = weights / static_cast<double>(owners) * context_.weight_element;
      const BlockId block =
          context_.add_block(collective_block("weights.broadcast", Collective::broadcast, group, bytes));
      rank_class.finish.push_back({block, owners});
    };
    append(plan_.sharded_copies() > 1 ? GroupKind::shard : GroupKind::dp, plan_.shards(), tensors.dense,
           rank_class.parameters);
    append(GroupKind::expert_dp, plan_.expert_replicas(), tensors.expert, rank_class.expert_parameters);
  }

  // Reads every gradient, and all-reduces one number over all ranks.
  Block norm_block(double parameters) {
    const Bytes norm = parameters * context_.stack.gradients.element;
    Block block = collective_block("gradient.norm_sum", Collective::all_reduce, GroupKind::world, Bytes(4.0));
    hardware::HeldBytes held;
    held.gradients = norm;
    block.items.insert(block.items.begin(), stream_item("gradient.norm", Purpose::optimizer, norm, held));
    return block;
  }

  Program& program_;
  const Plan& plan_;
  const LoweringContext& context_;
  const LoweredSlice& slice_;
  StagePartition& partition_;
  std::vector<std::vector<PartUse>> known_chunks_;  // [chunk program]
};

Lowerer::Lowerer(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack)
    : model_(model), cluster_(cluster), stack_(stack) {}

const LoweredSlice& Lowerer::slice(const Job& job, const Plan& plan) {
  const auto [entry, is_new] = slices_.try_emplace(slice_key(model_, job, plan));
  if (is_new) { entry->second = lower_slice(model_, stack_, job, plan); }
  return entry->second;
}

Lowered Lowerer::lower(const Job& job, const Plan& plan) {
  constexpr auto kEnough = infinite<Bytes>();
  return *lower_within(job, plan, {kEnough, kEnough});
}

const std::vector<double>& Lowerer::kept_activations(std::int64_t stage) const {
  const RankClassId of_stage = partition_.class_of_stage.at(static_cast<std::size_t>(stage));
  return partition_.classes.at(of_stage.index()).known.sizes.chunk_kept;
}

void Lowerer::begin(const Job& job, const Plan& plan) {
  ORRERY_ASSERT(is_valid(model_, job, plan, cluster_.devices));
  program_.job = job;
  program_.job.formats.fp4_block = hardware::fp4_block(cluster_.accelerator);
  program_.plan = plan;
  program_.reduces_under_backward = reduces_under_backward(plan, stack_);
  program_.pipeline = {plan.schedule, plan.pp, chunks_of(plan), micro_batches(job, plan),
                       !job.is_inference() && overlaps_dispatch(model_, plan, stack_)};
}

bool Lowerer::may_fit(const Job& job, const Plan& plan, const LowestMemory& lowest_memory, const Capacity& capacity) {
  begin(job, plan);
  const LoweredSlice& shared = slice(program_.job, plan);
  LoweringContext context = context_of(model_, stack_, program_.job, program_.plan, &program_.blocks);
  context.pool_multicasts = cluster_.second_tier.combines() && !job.is_inference();
  PlanLowering lowering(program_, context, shared, partition_);
  lowering.partition();
  return lowering.may_fit(lowest_memory, capacity);
}

std::optional<Lowered> Lowerer::lower_within(const Job& job, const Plan& plan, const Capacity& capacity) {
  begin(job, plan);
  const LoweredSlice& shared = slice(program_.job, plan);
  LoweringContext context = context_of(model_, stack_, program_.job, program_.plan, &program_.blocks);
  context.pool_multicasts = cluster_.second_tier.combines() && !job.is_inference();
  PlanLowering lowering(program_, context, shared, partition_);
  lowering.partition();
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
