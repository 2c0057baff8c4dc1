#include "orrery/parallel/lower_parts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/lowerer.hpp"

namespace orrery::parallel {

using hardware::Kernel;
using hardware::KernelKind;
using workload::LayerKind;
using workload::Operator;
using workload::Pass;

namespace {

bool copies_table(const workload::Model& model, const Job& job, const Plan& plan) {
  const bool used_twice = model.tied_embeddings || (model.mtp_layers > 0 && !job.is_inference());
  return used_twice && plan.pp > 1 && plan.schedule != ScheduleKind::dualpipe;
}

}  // namespace

bool LoweringContext::copies_table() const { return parallel::copies_table(model, job(), plan()); }

bool LoweringContext::gathers_under_forward() const {
  return plan().overlaps_gathers() && stack.overlap.parameter_gather && !owns_whole_tensors() &&
         !plan().offload.weights && !plan().offload.activations;
}

BlockId LoweringContext::add_block(Block block) const {
  blocks->emplace_back(std::move(block));
  return blocks->last_id();
}

namespace {

constexpr PartNames kEmbedding{"embedding.forward", "embedding.backward",       "embedding.weight_gradients",
                               "embedding.decode",  "embedding.gather_weights", "embedding.reduce_gradients"};
constexpr PartNames kTowerPatches{"tower_patches.forward",          "tower_patches.backward",
                                  "tower_patches.weight_gradients", "tower_patches.decode",
                                  "tower_patches.gather_weights",   "tower_patches.reduce_gradients"};
constexpr PartNames kTowerLayer{"tower_layer.forward", "tower_layer.backward",       "tower_layer.weight_gradients",
                                "tower_layer.decode",  "tower_layer.gather_weights", "tower_layer.reduce_gradients"};
constexpr PartNames kProjector{"projector.forward", "projector.backward",       "projector.weight_gradients",
                               "projector.decode",  "projector.gather_weights", "projector.reduce_gradients"};
constexpr PartNames kLayer{"layer.forward", "layer.backward",       "layer.weight_gradients",
                           "layer.decode",  "layer.gather_weights", "layer.reduce_gradients"};
constexpr PartNames kExpertLayer{"expert_layer.forward",          "expert_layer.backward",
                                 "expert_layer.weight_gradients", "expert_layer.decode",
                                 "expert_layer.gather_weights",   "expert_layer.reduce_gradients"};
constexpr PartNames kEncoderLayer{"encoder_layer.forward",          "encoder_layer.backward",
                                  "encoder_layer.weight_gradients", "encoder_layer.decode",
                                  "encoder_layer.gather_weights",   "encoder_layer.reduce_gradients"};
constexpr PartNames kInteraction{"interaction.forward", "interaction.backward",       "interaction.weight_gradients",
                                 "interaction.decode",  "interaction.gather_weights", "interaction.reduce_gradients"};
constexpr PartNames kTop{"top.forward", "top.backward",       "top.weight_gradients",
                         "top.decode",  "top.gather_weights", "top.reduce_gradients"};
constexpr PartNames kHead{"head.forward", "head.backward",       "head.weight_gradients",
                          "head.decode",  "head.gather_weights", "head.reduce_gradients"};
constexpr PartNames kMtp{"mtp.forward", "mtp.backward",       "mtp.weight_gradients",
                         "mtp.decode",  "mtp.gather_weights", "mtp.reduce_gradients"};

const PartNames& names_of(const workload::Model& model, const LayerKind& kind) {
  if (kind.part != workload::DensePart::none) { return kind.part == workload::DensePart::top ? kTop : kInteraction; }
  if (kind.encoder && model.encoder_layers > 0) { return kEncoderLayer; }
  return kind.experts ? kExpertLayer : kLayer;
}

// Input and output of a kernel if nothing else is in memory: the traffic of a stream kernel or fused attention; for
// GEMMs, their operands without weights.
Bytes working_set(const Kernel& kernel, Bytes element) {
  if (kernel.kind != KernelKind::gemm) { return kernel.bytes; }
  const auto rows = static_cast<double>(kernel.batch * kernel.m);
  return rows * static_cast<double>(kernel.n + kernel.k) * element;
}

// The host launches the items of a block while the device executes earlier ones, far enough ahead that only the sums
// matter. Stacks that capture the graphs of requests launch them at once.
Seconds launch_time(const Block& block, const LoweringContext& context) {
  const bool captured = context.job().is_inference() && context.stack.host.captures_requests;
  return captured ? Seconds(0) : host_time(block, context.stack);
}

Tensors tensors_of(const Operator& op) {
  const double number = op.expert ? static_cast<double>(std::max<std::int64_t>(op.forward.batch, 1)) : 1.0;
  return {op.expert ? 0.0 : number, op.expert ? number : 0.0, op.parameters / number};
}

void add_stream_traffic(std::vector<Operator>& operators, double factor) {
  for (auto& op : operators) {
    for (Kernel* kernel : {&op.forward, &op.backward_input, &op.backward_weight}) {
      if (kernel->kind != KernelKind::stream) { continue; }
      kernel->bytes *= factor;
      kernel->held *= factor;
    }
  }
}

void add_gaps(std::vector<Operator>& operators, const hardware::HostPolicy& host) {
  for (auto& op : operators) {
    for (Kernel* kernel : {&op.forward, &op.backward_input, &op.backward_weight}) {
      kernel->gap = host.kernel_gap;
      kernel->latency_hidden = host.latency_hidden;
    }
  }
}

// Grouped GEMMs of experts. Where the host launches them expert by expert, each with its casts, their kernels run
// concurrently on streams of their own: more launches, and no more latency on the device.
void issue_experts_apart(std::vector<Operator>& operators) {
  for (auto& op : operators) {
    if (!op.expert) { continue; }
    for (Kernel* kernel : {&op.forward, &op.backward_input, &op.backward_weight}) {
      if (kernel->kind == KernelKind::gemm) { kernel->extra_kernels = kernel->launches * (kernel->batch - 1); }
    }
  }
}

// Every expert's GEMMs and activation are kernels of their own, and none runs beside those of another expert.
void run_experts_in_sequence(std::vector<Operator>& operators) {
  int experts = 1;
  for (auto& op : operators) {
    if (!op.expert && op.tag != workload::OperatorTag::expert_activation) { continue; }
    for (Kernel* kernel : {&op.forward, &op.backward_input, &op.backward_weight}) {
      if (kernel->kind == KernelKind::gemm) {
        experts = static_cast<int>(kernel->batch);
        kernel->batch = 1;
        kernel->grouped = false;
      }
      if (kernel->kind != KernelKind::none) { kernel->launches *= experts; }
    }
  }
}

class SliceLowering {
 public:
  explicit SliceLowering(const LoweringContext& context)
      : context_(context),
        slice_(slice_of(context.job(), context.plan(), context.job().is_inference() ? Pass::prefill : Pass::train)) {
    decode_plan_.tp_overlap = TpOverlap::none;  // the GEMMs of one token cannot be split by rows
    if (decodes()) { decode_slice_ = slice_of(context.job(), context.plan(), Pass::decode); }
    result_.parts.reserve(4);
    result_.sizes.reserve(4);
  }

  LoweredSlice run() {
    const auto& model = context_.model;
    const auto& stack = context_.stack;
    const auto embedding = [&](const workload::Slice& s) { return workload::embedding_operators(model, stack, s); };
    const auto head = [&](const workload::Slice& s) { return workload::head_operators(model, stack, s); };
    lower_tower();
    result_.embedding = add(kEmbedding, embedding, {});
    const bool table_trained = sizes(*result_.embedding).dense > 0;
    const double table = workload::table_parameters(model, context_.plan().tp);
    if (table_trained) { result_.token_table = table; }
    lower_layers();
    result_.head = add(kHead, head, {.tied = model.tied_embeddings ? result_.token_table : 0.0});
    sizes(*result_.head).backward_follows = true;
    if (context_.copies_table()) {
      (table_trained ? sizes(*result_.head).dense : sizes(*result_.head).frozen) += table;
      const bool trains = table_trained && !context_.job().is_inference();
      sizes(*result_.head).dense_bytes += table * (trains ? context_.weight_element : context_.end_element);
    }
    if (model.mtp_layers > 0 && !context_.job().is_inference()) {
      const auto mtp = [&](const workload::Slice& s) { return workload::mtp_operators(model, stack, s); };
      result_.mtp = add(kMtp, mtp, {.is_layer = true});
      sizes(*result_.mtp).backward_follows = true;
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool decodes() const { return context_.job().is_inference() && context_.job().generate > 1; }
  [[nodiscard]] PartSizes& sizes(PartId part) { return result_.sizes[part]; }

  [[nodiscard]] std::vector<Operator> run_as_the_stack_does(std::vector<Operator> operators) const {
    add_stream_traffic(operators, context_.stack.stream_traffic);
    if (!context_.stack.fusion.grouped_experts) { run_experts_in_sequence(operators); }
    const hardware::HostPolicy& host = context_.stack.host;
    if (host.kernel_gap > Seconds(0) || host.latency_hidden > 0.0) { add_gaps(operators, host); }
    if (context_.stack.host.kernel_launch_time > Seconds(0)) { issue_experts_apart(operators); }
    return operators;
  }

  BlockId add_block(Block block) const {
    block.launch = launch_time(block, context_);
    return context_.add_block(std::move(block));
  }

  // Groups the model's layers into runs of a kind; each kind is lowered once.
  void lower_layers() {
    const auto& model = context_.model;
    std::vector<std::pair<LayerKind, LayerRun>> known;
    for (std::int64_t layer = 0; layer < model.depth();) {
      const LayerKind kind = workload::layer_kind(model, layer);
      const auto same = std::find_if(known.begin(), known.end(), [&](const auto& pair) { return pair.first == kind; });
      LayerRun run = same != known.end() ? same->second : lower_kind(kind);
      if (same == known.end()) { known.emplace_back(kind, run); }
      layer = is_uniform(model) ? model.depth() : layer + 1;
      run.end = layer;
      if (!result_.runs.empty() && result_.runs.back().part == run.part) { result_.runs.pop_back(); }
      result_.runs.push_back(run);
    }
  }

  // Whether all layers are of one kind, without looking at each layer.
  static bool is_uniform(const workload::Model& model) {
    const bool one_mlp = !model.has_experts() || (model.experts.first_dense == 0 && model.experts.every == 1);
    return one_mlp && !model.has_mixers() && model.pattern.empty() && !model.is_recommender() &&
           model.encoder_layers == 0 && (model.sliding_window == 0 || model.global_every == 0);
  }

  LayerRun lower_kind(const LayerKind& kind) {
    const Plan& plan = context_.plan();
    LayerRun run{0, lower_layer(kind, replayed_tags(plan)), {}};
    if (recomputes_some_layers(plan)) { run.without_recompute = lower_layer(kind, {}); }
    return run;
  }

  PartId lower_layer(const LayerKind& kind, workload::TagSet replayed) {
    const auto& job = context_.job();
    const auto& model = context_.model;
    const auto layer = [&](const workload::Slice& s) {
      return workload::layer_operators(model, context_.stack, s, kind);
    };
    const PartId part =
        add(names_of(model, kind), layer, {.replayed = replayed, .input = input_of(kind), .is_layer = true});
    if (job.is_inference()) {
      const std::int64_t sequences = job.global_batch / context_.plan().dp;
      sizes(part).kv_cache = static_cast<double>(sequences) *
                             workload::kv_cache(model, kind, slice_, job.seq, context_.stack.storage.narrow_cache);
    }
    return part;
  }

  // The input of a layer: the residual stream, or the vectors of a sample.
  [[nodiscard]] Bytes input_of(const LayerKind& kind) const {
    return kind.part == workload::DensePart::none ? context_.residual
                                                  : static_cast<double>(kind.in) * context_.residual;
  }

  // A vision tower. Recompute applies to its layers as well. Requests read images in the prefill only.
  void lower_tower() {
    const auto& model = context_.model;
    const auto& stack = context_.stack;
    const workload::Tower& tower = model.tower;
    if (tower.images == 0) { return; }
    const auto add_once = [&](const PartNames& names, const auto& operators_of) {
      return add(names, operators_of, {.decodes = false});
    };
    const auto patches = [&](const workload::Slice& s) { return workload::tower_patches(model, stack, s); };
    const auto projector = [&](const workload::Slice& s) { return workload::tower_projector(model, stack, s); };
    result_.tower.push_back({add_once(kTowerPatches, patches), 1});
    std::array<OptionalPartId, 2> layers;
    for (std::int64_t i = 0; i < tower.layers; ++i) {
      const bool windowed = tower.attends_in_windows(i);
      OptionalPartId& part = layers[windowed ? 1 : 0];
      if (!part) { part = lower_tower_layer(windowed); }
      if (result_.tower.back().part != part) { result_.tower.push_back({part, 0}); }
      ++result_.tower.back().repeat;
    }
    result_.tower.push_back({add_once(kProjector, projector), 1});
  }

  PartId lower_tower_layer(bool windowed) {
    const bool frozen = context_.job().adapter.rank > 0;
    const auto layer = [&](const workload::Slice& s) {
      return workload::tower_layer(context_.model, context_.stack, s, windowed);
    };
    const Bytes input = workload::tower_tensor(context_.model, context_.stack, slice_);
    return add(kTowerLayer, layer,
               {.replayed = frozen ? workload::TagSet{} : replayed_tags(context_.plan()),
                .input = frozen ? Bytes(0) : input,
                .is_layer = true,
                .wide = true,
                .decodes = false});
  }

  struct PartOptions {
    workload::TagSet replayed = {};
    double tied = 0.0;  // weights that the part uses and has gradients of, but whose parameters are counted elsewhere
    Bytes input = {};   // of the part, the only tensor kept if every operator is replayed
    bool is_layer = false;  // not embedding or head
    bool wide = false;      // weights that are not trained are stored as those of embedding and head
    bool decodes = true;    // generated tokens pass through it
  };

  template <class Make>
  PartId add(const PartNames& names, const Make& operators_of, const PartOptions& options) {
    const std::vector<Operator> operators = run_as_the_stack_does(operators_of(slice_));
    Part part;
    part.names = &names;
    const Bytes untrained = options.is_layer && !options.wide ? context_.layer_element : context_.end_element;
    PartSizes sizes = sizes_of(operators, options.replayed, untrained, options.input);
    if (options.is_layer) { add_matrices(sizes, operators); }
    part.forward = add_block(forward_block(names.forward, operators, context_.plan()));
    if (decodes() && options.decodes) {
      const std::vector<Operator> decoding = run_as_the_stack_does(operators_of(decode_slice_));
      sizes.decoding = largest_working_set(decoding);
      part.decode = add_block(forward_block(names.decode, decoding, decode_plan_));
    }
    if (!context_.job().is_inference()) {
      add_backward(part, operators, options.replayed, sizes.dense + sizes.expert + options.tied);
    }
    result_.parts.push_back(part);
    result_.sizes.push_back(sizes);
    return result_.parts.last_id();
  }

  // Muon updates embedding and head with Adam.
  void add_matrices(PartSizes& sizes, const std::vector<Operator>& operators) const {
    if (context_.stack.optimizer.kind != hardware::OptimizerKind::muon || context_.job().is_inference()) { return; }
    for (const auto& op : operators) {
      if (op.parameters > 0 && op.matrices.count > 0) { sizes.matrices.push_back({op.matrices, op.expert}); }
    }
  }

  // `untrained`: bytes of a weight that is not trained.
  [[nodiscard]] PartSizes sizes_of(const std::vector<Operator>& operators, workload::TagSet replayed, Bytes untrained,
                                   Bytes input) const {
    const Bytes trained = context_.job().is_inference() ? untrained : context_.weight_element;
    PartSizes sizes;
    for (const auto& op : operators) {
      const Bytes stored = op.wide && context_.job().is_inference() ? context_.end_element : trained;
      (op.expert ? sizes.expert : sizes.dense) += op.parameters;
      if (op.parameters > 0) { sizes.tensors.add(tensors_of(op), 1.0); }
      (op.expert ? sizes.frozen_expert : sizes.frozen) += op.frozen;
      (op.expert ? sizes.expert_bytes : sizes.dense_bytes) += op.parameters * stored + op.frozen * untrained;
      sizes.in_place.weights += op.in_place.weights;
      sizes.in_place.state += op.in_place.state;
      sizes.in_place.gradients += op.in_place.gradients;
      sizes.in_place.fetched = max(sizes.in_place.fetched, op.in_place.fetched);
      sizes.converted = max(sizes.converted, op.converted);
    }
    if (context_.job().is_inference()) { sizes.working = largest_working_set(operators); }
    sizes.activations = activations(operators, replayed, input);
    return sizes;
  }

  [[nodiscard]] Bytes largest_working_set(const std::vector<Operator>& operators) const {
    Bytes largest;
    for (const auto& op : operators) { largest = max(largest, working_set(op.forward, context_.weight_element)); }
    return largest;
  }

  void add_backward(Part& part, const std::vector<Operator>& operators, workload::TagSet replayed, double trained) {
    const auto backward = [&](std::string_view name, Gradients gradients) {
      return backward_block(name, operators, context_.plan(), context_.stack, replayed, gradients);
    };
    const auto& names = *part.names;
    if (!context_.splits()) {
      Block block = backward(names.backward, Gradients::all);
      append_accumulation(block, trained);
      part.backward = add_block(std::move(block));
      return;
    }
    part.backward = add_block(backward(names.backward, Gradients::input));
    Block block = backward(names.weight, Gradients::weight);
    append_accumulation(block, trained);
    part.weight = add_block(std::move(block));
  }

  // Unless the weight-gradient GEMMs accumulate, adding to the gradient buffer is a kernel: read the new gradient, read
  // and write the buffer.
  void append_accumulation(Block& block, double trained) const {
    const bool once = micro_batches(context_.job(), context_.plan()) == 1;
    if (context_.stack.fusion.gradient_accumulation || once || trained == 0) { return; }
    Kernel kernel;
    kernel.kind = KernelKind::stream;
    kernel.bytes = trained * (context_.weight_element + 2.0 * context_.stack.gradients.element);
    kernel.held.gradients = kernel.bytes;
    block.items.push_back({"gradient.accumulate", Purpose::weight_gradient, KernelLaunch{kernel}});
  }

  LoweringContext context_;
  workload::Slice slice_, decode_slice_;
  Plan decode_plan_ = context_.plan();
  LoweredSlice result_;
};

}  // namespace

// Trained weights and activations are stored in at least 16 bits; 8- and 4-bit formats are formats of GEMM inputs.
// Untrained weights are stored in the formats of the job.
LoweringContext context_of(const workload::Model& model, const hardware::Stack& stack, const Job& job, const Plan& plan,
                           IdVector<BlockId, SharedBlock>* blocks) {
  const Bytes wide = max(hardware::element_size(job.precision), Bytes(2.0));
  const auto tokens = static_cast<double>(plan.micro_batch * (job.is_inference() ? job.prompt : job.seq));
  const auto split = static_cast<double>(plan.cp * (plan.sequence_parallel ? plan.tp : 1));
  workload::WeightElements untrained = workload::weight_elements(job.precision, job.formats);
  if (!job.is_inference()) { untrained.layers -= untrained.scale; }
  const Bytes residual = tokens / split * static_cast<double>(model.hidden) * wide;
  return {model, stack, job, plan, blocks, wide, Bytes(untrained.layers), Bytes(untrained.ends), residual};
}

SliceKey slice_key(const workload::Model& model, const Job& job, const Plan& plan) {
  SliceKey key;
  key.slice = slice_of(job, plan, job.is_inference() ? Pass::prefill : Pass::train);
  key.replayed = replayed_tags(plan);
  key.some_layers = recomputes_some_layers(plan);
  key.tp_overlap = plan.tp_overlap;
  key.splits = splits_backward(plan.schedule);
  key.accumulates = micro_batches(job, plan) > 1;
  key.copies_table = copies_table(model, job, plan);
  key.sequences = job.is_inference() ? job.global_batch / plan.dp : 0;
  key.decoded_together = job.is_inference() ? sequences_decoded_together(job, plan) : 0;
  return key;
}

std::size_t SliceHash::operator()(const SliceKey& key) const {
  const auto& slice = key.slice;
  std::size_t hash = 0;
  const auto mix = [&hash](auto value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32U;
  };
  mix(slice.tp | slice.micro_batch << 20U | slice.cp << 40U);
  mix(slice.table_ranks | static_cast<std::int64_t>(slice.tables.sharding) << 40U | slice.replicas << 44U);
  mix(slice.tables.replicated_below << 1U | (slice.offloads_tables ? 1 : 0));
  mix(slice.ep | slice.etp << 20U | static_cast<std::int64_t>(slice.cp_method) << 40U | key.sequences << 44U);
  mix(key.replayed.bits() | (key.some_layers ? 1U : 0U) << 31U);
  mix(static_cast<int>(key.tp_overlap) << 4 | (slice.sequence_parallel ? 1 : 0) << 8 | (key.splits ? 1 : 0) << 9 |
      (key.accumulates ? 1 : 0) << 10 | (key.copies_table ? 1 : 0) << 11 | key.decoded_together << 12U);
  return hash;
}

LoweredSlice lower_slice(const workload::Model& model, const hardware::Stack& stack, const Job& job, const Plan& plan) {
  IdVector<BlockId, SharedBlock> blocks;
  LoweredSlice slice = SliceLowering(context_of(model, stack, job, plan, &blocks)).run();
  slice.blocks = std::move(blocks);
  return slice;
}

}  // namespace orrery::parallel
