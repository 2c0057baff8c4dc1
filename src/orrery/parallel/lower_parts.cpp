#include "orrery/parallel/lower_parts.hpp"

#include <algorithm>
#include <utility>

#include "orrery/parallel/blocks.hpp"

namespace orrery::parallel {

using hardware::Kernel;
using hardware::KernelKind;
using network::Collective;
using workload::LayerKind;
using workload::Operator;
using workload::Pass;

bool LoweringContext::gathers_under_forward() const {
  return plan().dp_overlap && stack.overlap_parameter_gather && !plan().offload.weights && !plan().offload.activations;
}

bool LoweringContext::copies_table() const {
  const bool used_twice = model.tied_embeddings || (model.mtp_layers > 0 && !job().is_inference());
  return used_twice && plan().pp > 1 && plan().schedule != ScheduleKind::dualpipe;
}

std::int32_t LoweringContext::add_block(Block block) const {
  program.blocks.push_back(std::move(block));
  return static_cast<std::int32_t>(program.blocks.size()) - 1;
}

namespace {

void append(Block& block, Collective collective, GroupKind group, Bytes bytes) {
  Item& item = block.items.emplace_back();
  item.name = block.name;
  item.purpose = Purpose::optimizer;
  item.is_collective = true;
  item.call = {collective, group, bytes};
}

}  // namespace

void append_transfer(Block& block, std::string_view name, Bytes bytes, bool asynchronous) {
  append(block, Collective::broadcast, GroupKind::host, bytes);
  block.items.back().name = name;
  block.items.back().asynchronous = asynchronous;
}

// Under hybrid sharding the shards of different copies are summed when each has been reduced within its own.
void append_reduction(Block& block, const LoweringContext& context, double dense, double expert) {
  const Plan& plan = context.plan();
  const Bytes element = context.stack.gradient_reduce_element;
  const Collective collective = plan.zero == 0 ? Collective::all_reduce : Collective::reduce_scatter;
  if (dense > 0 && plan.replicas() > 1) {
    const bool hybrid = plan.zero > 0 && plan.sharded_copies() > 1;
    if (!hybrid || plan.shards() > 1) {
      append(block, collective, hybrid ? GroupKind::shard : GroupKind::dp, dense * element);
    }
    if (hybrid) {
      append(block, Collective::all_reduce, GroupKind::copies, dense / static_cast<double>(plan.shards()) * element);
    }
  }
  if (expert > 0 && plan.expert_replicas() > 1) { append(block, collective, GroupKind::expert_dp, expert * element); }
}

void append_gather(Block& block, const LoweringContext& context, Bytes dense, Bytes expert) {
  const Plan& plan = context.plan();
  if (dense > Bytes(0) && plan.shards() > 1) {
    append(block, Collective::all_gather, plan.sharded_copies() > 1 ? GroupKind::shard : GroupKind::dp, dense);
  }
  if (expert > Bytes(0) && plan.expert_replicas() > 1) {
    append(block, Collective::all_gather, GroupKind::expert_dp, expert);
  }
}

namespace {

constexpr PartNames kEmbedding{"embedding.forward", "embedding.backward",       "embedding.weight_gradients",
                               "embedding.decode",  "embedding.gather_weights", "embedding.reduce_gradients"};
constexpr PartNames kLayer{"layer.forward", "layer.backward",       "layer.weight_gradients",
                           "layer.decode",  "layer.gather_weights", "layer.reduce_gradients"};
constexpr PartNames kExpertLayer{"expert_layer.forward",          "expert_layer.backward",
                                 "expert_layer.weight_gradients", "expert_layer.decode",
                                 "expert_layer.gather_weights",   "expert_layer.reduce_gradients"};
constexpr PartNames kEncoderLayer{"encoder_layer.forward",          "encoder_layer.backward",
                                  "encoder_layer.weight_gradients", "encoder_layer.decode",
                                  "encoder_layer.gather_weights",   "encoder_layer.reduce_gradients"};
constexpr PartNames kHead{"head.forward", "head.backward",       "head.weight_gradients",
                          "head.decode",  "head.gather_weights", "head.reduce_gradients"};
constexpr PartNames kFurther{"further_token.forward", "further_token.backward",       "further_token.weight_gradients",
                             "further_token.decode",  "further_token.gather_weights", "further_token.reduce_gradients"};

const PartNames& names_of(const workload::Model& model, const LayerKind& kind) {
  if (kind.encoder && model.encoder_layers > 0) { return kEncoderLayer; }
  return kind.experts ? kExpertLayer : kLayer;
}

// Input and output of a kernel, where nothing else is in memory: what a stream or fused attention moves; of products,
// their operands less the weights.
Bytes working_set(const Kernel& kernel, Bytes element) {
  if (kernel.kind != KernelKind::gemm) { return kernel.bytes; }
  const auto rows = static_cast<double>(kernel.batch * kernel.m);
  return rows * static_cast<double>(kernel.n + kernel.k) * element;
}

class PartLowering {
 public:
  explicit PartLowering(const LoweringContext& context)
      : context_(context),
        slice_(slice_of(context.job(), context.plan(), context.job().is_inference() ? Pass::prefill : Pass::train)) {
    decode_plan_.tp_overlap = TpOverlap::none;  // a token's products have nothing to cut
    if (decodes()) { decode_slice_ = slice_of(context.job(), context.plan(), Pass::decode); }
    result_.parts.reserve(4);
    result_.sizes.reserve(4);
  }

  Parts run() {
    const auto& model = context_.model;
    const auto& stack = context_.stack;
    const auto embedding = [&](const workload::Slice& s) { return workload::embedding_operators(model, stack, s); };
    const auto head = [&](const workload::Slice& s) { return workload::head_operators(model, stack, s); };
    result_.embedding = add(kEmbedding, embedding, Recompute::none);
    const bool table_trained = result_.sizes.front().dense > 0;
    const double table = workload::table_parameters(model, context_.plan().tp);
    if (table_trained) { result_.table = table; }
    lower_layers();
    result_.head = add(kHead, head, Recompute::none, model.tied_embeddings ? result_.table : 0.0);
    sizes(result_.head).turns = true;
    if (context_.copies_table()) {
      (table_trained ? sizes(result_.head).dense : sizes(result_.head).frozen) += table;
      sizes(result_.head).dense_bytes += table * context_.weight_element;
    }
    if (model.mtp_layers > 0 && !context_.job().is_inference()) {
      const auto further = [&](const workload::Slice& s) { return workload::mtp_operators(model, stack, s); };
      result_.further = add(kFurther, further, Recompute::none);
      sizes(result_.further).turns = true;
    }
    for (std::size_t i = 0; i < result_.parts.size(); ++i) { add_side_blocks(result_.parts[i], result_.sizes[i]); }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool decodes() const { return context_.job().is_inference() && context_.job().generate > 1; }
  [[nodiscard]] PartSizes& sizes(std::int32_t part) { return result_.sizes[static_cast<std::size_t>(part)]; }

  // The model's layers as runs of a kind, each kind lowered when it is first met.
  void lower_layers() {
    const auto& model = context_.model;
    std::vector<std::pair<LayerKind, std::int32_t>> known;
    for (std::int64_t layer = 0; layer < model.depth();) {
      const LayerKind kind = workload::layer_kind(model, layer);
      const auto same = std::find_if(known.begin(), known.end(), [&](const auto& pair) { return pair.first == kind; });
      const std::int32_t part = same != known.end() ? same->second : lower_layer(kind);
      if (same == known.end()) { known.emplace_back(kind, part); }
      layer = is_uniform(model) ? model.depth() : layer + 1;
      if (!result_.runs.empty() && result_.runs.back().part == part) {
        result_.runs.back().end = layer;
      } else {
        result_.runs.push_back({layer, part});
      }
    }
  }

  // Whether all layers are of one kind, seen without looking at each.
  static bool is_uniform(const workload::Model& model) {
    const bool one_mlp = !model.has_experts() || (model.experts.first_dense == 0 && model.experts.every == 1);
    return one_mlp && model.encoder_layers == 0 && (model.sliding_window == 0 || model.global_every == 0);
  }

  std::int32_t lower_layer(const LayerKind& kind) {
    const auto& job = context_.job();
    const auto& model = context_.model;
    const auto layer = [&](const workload::Slice& s) {
      return workload::layer_operators(model, context_.stack, s, kind);
    };
    const std::int32_t part = add(names_of(model, kind), layer, context_.plan().recompute);
    if (job.is_inference()) {
      const std::int64_t sequences = job.global_batch / context_.plan().dp;
      sizes(part).kv_cache = static_cast<double>(sequences) * workload::kv_cache(model, kind, slice_, job.seq);
    }
    return part;
  }

  // `tied`: weights that the part uses and makes gradients of, but whose operators are not counted to own them.
  template <class Make>
  std::int32_t add(const PartNames& names, const Make& operators_of, Recompute recompute, double tied = 0.0) {
    const std::vector<Operator> operators = operators_of(slice_);
    Part part;
    part.names = &names;
    const bool is_layer = &names != &kEmbedding && &names != &kHead;
    PartSizes sizes = sizes_of(operators, recompute, is_layer ? context_.narrow_element : context_.weight_element);
    part.forward = context_.add_block(forward_block(names.forward, operators, context_.plan()));
    if (decodes()) {
      part.decode = context_.add_block(forward_block(names.decode, operators_of(decode_slice_), decode_plan_));
    }
    if (!context_.job().is_inference()) { add_backward(part, operators, recompute, sizes.dense + sizes.expert + tied); }
    result_.parts.push_back(part);
    result_.sizes.push_back(sizes);
    return static_cast<std::int32_t>(result_.parts.size()) - 1;
  }

  // `untrained`: bytes of a weight that is not trained.
  [[nodiscard]] PartSizes sizes_of(const std::vector<Operator>& operators, Recompute recompute, Bytes untrained) const {
    const Bytes trained = context_.job().is_inference() ? untrained : context_.weight_element;
    PartSizes sizes;
    for (const auto& op : operators) {
      (op.expert ? sizes.expert : sizes.dense) += op.parameters;
      (op.expert ? sizes.frozen_expert : sizes.frozen) += op.frozen;
      (op.expert ? sizes.expert_bytes : sizes.dense_bytes) += op.parameters * trained + op.frozen * untrained;
      sizes.whole += op.saved;
      if (op.attention_core) { sizes.core += op.saved; }
      if (context_.job().is_inference()) {
        sizes.working = max(sizes.working, working_set(op.forward, context_.weight_element));
      }
    }
    sizes.kept = sizes.whole;
    if (recompute == Recompute::selective) { sizes.kept -= sizes.core; }
    if (recompute == Recompute::full) { sizes.kept = context_.residual; }
    return sizes;
  }

  void add_backward(Part& part, const std::vector<Operator>& operators, Recompute recompute, double trained) {
    const auto backward = [&](std::string_view name, Gradients gradients) {
      return backward_block(name, operators, context_.plan(), context_.stack, recompute, gradients);
    };
    const auto& names = *part.names;
    if (!context_.splits()) {
      Block block = backward(names.backward, Gradients::all);
      append_accumulation(block, trained);
      part.backward = context_.add_block(std::move(block));
      return;
    }
    part.backward = context_.add_block(backward(names.backward, Gradients::input));
    Block block = backward(names.weight, Gradients::weight);
    append_accumulation(block, trained);
    part.weight = context_.add_block(std::move(block));
  }

  // Unless the weight-gradient products do it themselves, adding into the gradient buffer is a kernel of its own:
  // read the new gradient, read and write the buffer.
  void append_accumulation(Block& block, double trained) const {
    const bool once = context_.program.pipeline.micro_batches == 1;
    if (context_.stack.fused_gradient_accumulation || once || trained == 0) { return; }
    Item& item = block.items.emplace_back();
    item.name = "gradient.accumulate";
    item.purpose = Purpose::backward;
    item.kernel.kind = KernelKind::stream;
    item.kernel.bytes = trained * (context_.weight_element + 2.0 * context_.stack.gradient_element);
  }

  std::int32_t add_unless_empty(Block block) const {
    return block.items.empty() ? -1 : context_.add_block(std::move(block));
  }

  void add_side_blocks(Part& part, const PartSizes& sizes) const {
    const Plan& plan = context_.plan();
    const auto& names = *part.names;
    Block beside{names.gather, {}}, work{names.gather, {}};
    if (plan.offload.weights) { append_transfer(beside, "weights.fetch", resident(sizes)); }
    if (plan.zero == 3) {
      append_gather(plan.dp_overlap ? beside : work, context_, sizes.dense_bytes, sizes.expert_bytes);
    }
    add_backward_gather(part, sizes, beside);
    part.gather = add_unless_empty(std::move(beside));
    part.gather_work = add_unless_empty(std::move(work));
    part.first_gather = part.gather;
    if (part.backward_gather < 0) { part.backward_gather = part.gather; }
    if (context_.job().is_inference()) { return; }
    if ((plan.zero == 1 || plan.zero == 2) && context_.gathers_under_forward()) {
      Block updated{names.gather, {}};
      append_gather(updated, context_, sizes.dense * context_.weight_element, sizes.expert * context_.weight_element);
      part.first_gather = add_unless_empty(std::move(updated));
    }
    Block reduce{names.reduce, {}};
    append_reduction(reduce, context_, sizes.dense, sizes.expert);
    part.reduce = add_unless_empty(std::move(reduce));
  }

  // What backward fetches besides weights: activations that forward has stored in the second tier.
  void add_backward_gather(Part& part, const PartSizes& sizes, const Block& weights) const {
    if (!context_.plan().offload.activations || sizes.turns || sizes.kept == Bytes(0)) { return; }
    Block store{"activations.store", {}};
    append_transfer(store, store.name, sizes.kept);
    part.store = context_.add_block(std::move(store));
    Block both = weights;
    append_transfer(both, "activations.fetch", sizes.kept);
    part.backward_gather = context_.add_block(std::move(both));
  }

  // Bytes of a part's weights that a rank stores.
  [[nodiscard]] Bytes resident(const PartSizes& sizes) const {
    const Plan& plan = context_.plan();
    if (plan.zero < 3) { return sizes.dense_bytes + sizes.expert_bytes; }
    return sizes.dense_bytes / static_cast<double>(plan.shards()) +
           sizes.expert_bytes / static_cast<double>(plan.expert_replicas());
  }

  const LoweringContext& context_;
  workload::Slice slice_, decode_slice_;
  Plan decode_plan_ = context_.plan();
  Parts result_;
};

}  // namespace

Parts lower_parts(const LoweringContext& context) { return PartLowering(context).run(); }

}  // namespace orrery::parallel
