// Model + plan -> program. See program.hpp for what a program is.
#include <algorithm>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

using network::Collective;
using workload::Operator;

std::vector<std::int64_t> layers_per_virtual_stage(const workload::Model& model, const Plan& plan) {
  const std::int64_t count = plan.pp * plan.vpp, layers = model.depth();
  std::vector<std::int64_t> shares(static_cast<std::size_t>(count), layers / count);
  std::int64_t left = layers % count;
  for (std::int64_t q = count - 2; left > 0; --q, --left) { ++shares[static_cast<std::size_t>(q)]; }
  return shares;
}

namespace {

struct PartNames {
  std::string_view forward, backward, gather, reduce;
};

// A part of the model on one rank: what its blocks and its weights are.
struct Part {
  PartNames names;
  double parameters = 0;
  Bytes kept;   // activations kept from forward to backward under the plan's recompute choice
  Bytes whole;  // without recompute
  std::int32_t forward = -1, backward = -1, gather = -1, reduce = -1;  // block indices
};

constexpr PartNames kEmbedding{"embedding.forward", "embedding.backward", "embedding.gather_weights",
                               "embedding.reduce_gradients"};
constexpr PartNames kLayer{"layer.forward", "layer.backward", "layer.gather_weights", "layer.reduce_gradients"};
constexpr PartNames kHead{"head.forward", "head.backward", "head.gather_weights", "head.reduce_gradients"};

class Lowering {
 public:
  Lowering(const workload::Model& model, const Job& job, const Plan& plan, const hardware::Cluster& cluster,
           const hardware::Stack& stack)
      : model_(model), stack_(stack), weight_element_(hardware::element_size(job.precision)) {
    program_.job = job;
    program_.plan = plan;
    program_.mesh = make_mesh(cluster, plan);
    program_.pipeline = {plan.schedule, plan.pp, plan.vpp, micro_batches(job, plan)};
    // Weights and activations are kept in 16 bits at least; 8- and 4-bit formats name the inputs of products only.
    weight_element_ = max(weight_element_, Bytes(2.0));
  }

  Program run() {
    lower_parts();
    const auto& plan = program_.plan;
    const double tokens = static_cast<double>(plan.micro_batch * program_.job.seq);
    const double split = plan.sequence_parallel ? static_cast<double>(plan.tp) : 1.0;
    program_.transfer_bytes = tokens * static_cast<double>(model_.hidden) * weight_element_ / split;
    lower_stages();
    return std::move(program_);
  }

 private:
  std::int32_t add_block(Block block) {
    program_.blocks.push_back(std::move(block));
    return static_cast<std::int32_t>(program_.blocks.size()) - 1;
  }

  void lower_parts() {
    const auto& plan = program_.plan;
    const workload::Slice slice = slice_of(program_.job, plan);
    embedding_ = lower_part(workload::embedding_operators(model_, stack_, slice), kEmbedding, Recompute::none);
    layer_ = lower_part(workload::layer_operators(model_, stack_, slice, workload::layer_kind(model_, 0)), kLayer, plan.recompute);
    const double tied = model_.tied_embeddings ? table_parameters() : 0.0;
    head_ = lower_part(workload::head_operators(model_, stack_, slice), kHead, Recompute::none, tied);
    if (plan.pp > 1) { head_.parameters += tied; }  // the last stage holds a copy of the embedding's table
    for (Part* part : {&embedding_, &layer_, &head_}) { add_data_parallel_blocks(*part); }
  }

  // Weights of the token table on one rank, padding included.
  [[nodiscard]] double table_parameters() const {
    return static_cast<double>(workload::vocabulary_rows(model_, program_.plan.tp) * model_.hidden);
  }

  // `tied`: weights that the part uses and makes gradients of, but whose operators are not counted to own them.
  Part lower_part(const std::vector<Operator>& operators, const PartNames& names, Recompute recompute,
                  double tied = 0.0) {
    const auto& plan = program_.plan;
    Part part;
    part.names = names;
    Bytes core;
    for (const auto& op : operators) {
      part.parameters += op.parameters;
      part.whole += op.saved;
      if (op.attention_core) { core += op.saved; }
    }
    part.kept = part.whole;
    if (recompute == Recompute::selective) { part.kept -= core; }
    if (recompute == Recompute::full) { part.kept = layer_input(); }
    Block backward = backward_block(names.backward, operators, plan, stack_, recompute);
    append_gradient_accumulation(backward, part.parameters + tied);
    part.forward = add_block(forward_block(names.forward, operators, plan));
    part.backward = add_block(std::move(backward));
    return part;
  }

  // Input of a layer, all that full recompute keeps of it.
  [[nodiscard]] Bytes layer_input() const {
    const auto& plan = program_.plan;
    const double tokens = static_cast<double>(plan.micro_batch * program_.job.seq);
    const double split = plan.sequence_parallel ? static_cast<double>(plan.tp) : 1.0;
    return tokens * static_cast<double>(model_.hidden) * weight_element_ / split;
  }

  // Unless the weight-gradient products do it themselves, adding into the gradient buffer is a kernel of its own:
  // read the new gradient, read and write the buffer.
  void append_gradient_accumulation(Block& block, double parameters) {
    if (stack_.fused_gradient_accumulation || program_.pipeline.micro_batches == 1 || parameters == 0) { return; }
    Item item;
    item.name = "gradient.accumulate";
    item.purpose = Purpose::backward;
    item.kernel.kind = hardware::KernelKind::stream;
    item.kernel.bytes = parameters * (weight_element_ + 2.0 * stack_.gradient_element);
    block.items.push_back(item);
  }

  void add_data_parallel_blocks(Part& part) {
    const auto& plan = program_.plan;
    if (plan.dp == 1 || part.parameters == 0) { return; }
    part.reduce = add_block(collective_block(part.names.reduce,
                                             plan.zero == 0 ? Collective::all_reduce : Collective::reduce_scatter,
                                             GroupKind::dp, part.parameters * stack_.gradient_reduce_element));
    if (plan.zero > 0) {
      part.gather = add_block(collective_block(part.names.gather, Collective::all_gather, GroupKind::dp,
                                               part.parameters * weight_element_));
    }
  }

  void lower_stages() {
    const auto& plan = program_.plan;
    const auto shares = layers_per_virtual_stage(model_, plan);
    const SliceSizes sizes{layer_.parameters, embedding_.parameters, head_.parameters, layer_.kept,
                           layer_.whole,      embedding_.kept,       head_.kept,       weight_element_};
    for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
      const std::int32_t index = class_of(stage, shares);
      program_.class_of_stage.push_back(index);
      program_.memory.push_back(stage_memory(program_.classes[static_cast<std::size_t>(index)], program_.pipeline,
                                             stage, plan, stack_, sizes));
    }
  }

  // The class of a stage: that of the previous stage when it has the same shape, a new one otherwise.
  std::int32_t class_of(std::int64_t stage, const std::vector<std::int64_t>& shares) {
    const auto& plan = program_.plan;
    const auto layers = [&](std::int64_t s, std::int64_t c) {
      return shares[static_cast<std::size_t>(c * plan.pp + s)];
    };
    const bool edge = stage <= 1 || stage == plan.pp - 1;  // stages 0 and p - 1 are shapes of their own
    bool same = !edge;
    for (std::int64_t c = 0; c < plan.vpp && same; ++c) { same = layers(stage, c) == layers(stage - 1, c); }
    if (same) {
      ++program_.classes.back().stages;
      return static_cast<std::int32_t>(program_.classes.size()) - 1;
    }
    RankClass rank_class;
    rank_class.first_stage = stage;
    rank_class.stages = 1;
    for (std::int64_t c = 0; c < plan.vpp; ++c) {
      const bool embedding = stage == 0 && c == 0;
      const bool head = stage == plan.pp - 1 && c == plan.vpp - 1;
      rank_class.chunks.push_back(lower_chunk(layers(stage, c), embedding, head));
      rank_class.parameters += static_cast<double>(layers(stage, c)) * layer_.parameters;
      if (embedding) { rank_class.parameters += embedding_.parameters; }
      if (head) { rank_class.parameters += head_.parameters; }
    }
    lower_finish(rank_class, stage == 0 || stage == plan.pp - 1);
    program_.classes.push_back(std::move(rank_class));
    return static_cast<std::int32_t>(program_.classes.size()) - 1;
  }

  ChunkProgram lower_chunk(std::int64_t layers, bool embedding, bool head) {
    const auto& plan = program_.plan;
    const bool replicas = plan.dp > 1;
    const bool gathers_always = replicas && plan.zero == 3;
    const bool gathers_first = gathers_always || (replicas && plan.zero > 0 && gathers_under_forward());
    const bool reduces_always = replicas && plan.zero >= 2;
    const bool reduces_last = reduces_always || (replicas && plan.dp_overlap);

    ChunkProgram chunk;
    chunk.layers = layers;
    chunk.has_embedding = embedding;
    chunk.has_head = head;
    chunk.forward = forward_segment(chunk, gathers_always);
    chunk.first_forward = forward_segment(chunk, gathers_first);
    chunk.backward = backward_segment(chunk, gathers_always, reduces_always);
    chunk.last_backward = backward_segment(chunk, gathers_always, reduces_last);
    chunk.waits_for_reduce = reduces_always;
    return chunk;
  }

  [[nodiscard]] bool gathers_under_forward() const {
    return program_.plan.dp_overlap && stack_.overlap_parameter_gather;
  }

  // One use of a part. Without overlap, gathers and reductions become work of their own on the compute stream.
  void append_use(Segment& segment, std::int32_t work, std::int64_t repeat, std::int32_t gather, std::int32_t reduce) {
    if (repeat == 0) { return; }
    if (program_.plan.dp_overlap) {
      segment.push_back({work, repeat, gather, reduce});
      return;
    }
    if (gather >= 0) { segment.push_back({gather, repeat, -1, -1}); }
    segment.push_back({work, repeat, -1, -1});
    if (reduce >= 0) { segment.push_back({reduce, repeat, -1, -1}); }
  }

  Segment forward_segment(const ChunkProgram& chunk, bool gather) {
    Segment segment;
    const auto use = [&](const Part& part, std::int64_t repeat) {
      append_use(segment, part.forward, repeat, gather ? part.gather : -1, -1);
    };
    use(embedding_, chunk.has_embedding ? 1 : 0);
    use(layer_, chunk.layers);
    use(head_, chunk.has_head ? 1 : 0);
    return segment;
  }

  Segment backward_segment(const ChunkProgram& chunk, bool gather, bool reduce) {
    Segment segment;
    const auto use = [&](const Part& part, std::int64_t repeat) {
      append_use(segment, part.backward, repeat, gather ? part.gather : -1, reduce ? part.reduce : -1);
    };
    use(head_, chunk.has_head ? 1 : 0);
    use(layer_, chunk.layers);
    use(embedding_, chunk.has_embedding ? 1 : 0);
    return segment;
  }

  void append_finish(Segment& segment, Block block) { segment.push_back({add_block(std::move(block)), 1, -1, -1}); }

  // The tied table is summed over its two copies after each is summed over its replicas (Megatron-LM's order), so that
  // the two stages, which meet in it, have nothing left to do that the other's lateness could delay.
  void lower_finish(RankClass& rank_class, bool holds_embedding) {
    const auto& plan = program_.plan;
    const double shard = plan.zero > 0 ? static_cast<double>(plan.dp) : 1.0;
    if (plan.dp > 1 && plan.zero < 2 && !plan.dp_overlap) {
      append_finish(
          rank_class.finish_reduce,
          collective_block("gradient.reduce", plan.zero == 0 ? Collective::all_reduce : Collective::reduce_scatter,
                           GroupKind::dp, rank_class.parameters * stack_.gradient_reduce_element));
    }
    if (model_.tied_embeddings && plan.pp > 1 && holds_embedding) {
      append_finish(rank_class.finish_reduce,
                    collective_block("embedding.reduce_tied", Collective::all_reduce, GroupKind::embedding,
                                     table_parameters() * stack_.gradient_reduce_element));
    }
    append_finish(rank_class.finish, optimizer_block(rank_class.parameters / shard));
    const bool gathers = plan.dp > 1 && (plan.zero == 1 || plan.zero == 2) && !gathers_under_forward();
    if (gathers) {
      append_finish(rank_class.finish, collective_block("weights.gather", Collective::all_gather, GroupKind::dp,
                                                        rank_class.parameters * weight_element_));
    }
  }

  // Gradient norm (read every gradient, one number summed over everybody), then the optimizer: read gradient, read and
  // write master copy and moments, write the weight.
  Block optimizer_block(double parameters) {
    Block block{"optimizer", {}};
    const auto stream = [&](std::string_view name, Bytes bytes_per_parameter) {
      Item item;
      item.name = name;
      item.purpose = Purpose::optimizer;
      item.kernel.kind = hardware::KernelKind::stream;
      item.kernel.bytes = parameters * bytes_per_parameter;
      return item;
    };
    block.items.push_back(stream("gradient.norm", stack_.gradient_element));
    block.items.push_back(
        collective_block("gradient.norm_sum", Collective::all_reduce, GroupKind::world, Bytes(4.0)).items.front());
    const Bytes state = master_element(stack_, weight_element_) + stack_.moment_element;
    block.items.push_back(stream("optimizer.step", stack_.gradient_element + 2.0 * state + weight_element_));
    return block;
  }

  const workload::Model& model_;
  const hardware::Stack& stack_;
  Bytes weight_element_;
  Program program_;
  Part embedding_, layer_, head_;
};

}  // namespace

Program lower(const workload::Model& model, const Job& job, const Plan& plan, const hardware::Cluster& cluster,
              const hardware::Stack& stack) {
  ORRERY_ASSERT(is_valid(model, job, plan, cluster.devices));
  return Lowering(model, job, plan, cluster, stack).run();
}

}  // namespace orrery::parallel
