#include "orrery/workload/operators_kernels.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"

namespace orrery::workload {

namespace {

// Megatron-LM pads the vocabulary to a multiple of make_vocab_size_divisible_by (128) times t, so that every rank holds
// the same number of rows and GEMMs have full tiles.
constexpr std::int64_t kVocabMultiple = 128;

constexpr double kNarrowestActivation = 2.0;
constexpr double kNarrowestCache = 1.0;

// A 32-bit scale per 128 elements (arXiv:2412.19437, section 3.3.2).
constexpr double kBlockScale = 4.0 / 128.0;

std::int64_t ceiling(double x) { return static_cast<std::int64_t>(std::ceil(x)); }

void expect_whole_parts(const Model& model, const Slice& slice) {
  ORRERY_ASSERT(slice.tp >= 1 && slice.cp >= 1 && slice.ep >= 1 && slice.etp >= 1);
  ORRERY_ASSERT(slice.micro_batch >= 1 && slice.seq >= 1);
  ORRERY_ASSERT((!model.has_attention() || slice.pads_heads || model.heads % slice.tp == 0) &&
                slice.seq % slice.cp == 0);
  ORRERY_ASSERT(slice.pass != Pass::decode || (slice.seq == 1 && slice.cp == 1 && slice.context >= 1));
}

// Shape, FLOPs and bytes of one of a linear layer's three GEMMs, all groups together. FLOPs and bytes use the exact
// number of rows; a kernel's shape is rounded.
struct LinearShape {
  double rows = 0;  // of all groups
  std::int64_t groups = 1;
  hardware::Precision precision = hardware::Precision::bf16;
  bool grouped = false;  // groups are experts
};

Kernel linear_gemm(const LinearShape& shape, std::int64_t m, std::int64_t n, std::int64_t k, double volume,
                   double bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = shape.precision;
  kernel.batch = shape.groups;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = Flops(2.0 * volume);
  kernel.bytes = Bytes(bytes);
  kernel.grouped = shape.grouped;
  return kernel;
}

// Narrow copies of X and, backward, of dY, read in two bytes, one kernel each. Training writes each twice, the second
// time transposed for the weight-gradient GEMM. With scales per block, a copy has 4 bytes more per 128 elements. With
// scales of the tensor itself, a kernel reads it for its largest value first, so no cast is part of the kernel that
// makes the tensor.
void append_casts(Operator& op, const Sizes& z, const Linear& l) {
  const double copies = z.training && !z.frozen() ? 2.0 : 1.0;
  const bool is_current = z.scales == hardware::Fp8Recipe::current;
  const double scale = z.scales == hardware::Fp8Recipe::block ? kBlockScale : 0.0;
  const double pass = (is_current ? 2.0 : 1.0) * z.element + copies * (z.matrix_element + scale);
  const auto cast = [&](Kernel& kernel, std::int64_t width) {
    kernel.casts = Bytes(l.rows * real(width) * pass);
    kernel.launches += is_current ? 2 : 1;
  };
  if (l.casts_input || is_current) { cast(op.forward, l.k); }
  if (l.casts_gradient || is_current) { cast(op.backward_input, l.n); }
}

// Weights that are stored in another format than the GEMM's inputs. Inference: the GEMM reads narrower ones as they are
// stored and converts them on chip (weight-only kernels such as Marlin, arXiv:2408.11743). Else a kernel before each
// GEMM writes a copy in the GEMM's format, which the GEMM reads (bitsandbytes, arXiv:2305.14314; autocast of PyTorch).
void read_stored_weights(Operator& op, const Sizes& z, const Linear& l, double input) {
  const double stored = l.wide ? z.end_element : z.weight_element;
  const double read = l.groups_read * real(l.n) * real(l.k);
  if (!l.adapter && !l.wide && !z.training && z.weight_scale > 0.0) {
    op.forward.bytes += Bytes(read * z.weight_scale);
    op.forward.held.weights += Bytes(read * z.weight_scale);
  }
  if (l.adapter || stored == input) { return; }
  if (!z.training && stored < input) {
    op.forward.bytes -= Bytes(read * (input - stored));
    op.forward.held.weights -= Bytes(read * (input - stored));
    op.forward.weight_only = true;
    return;
  }
  if (!z.training || z.frozen()) {
    op.converted = Bytes(read * input);
    for (Kernel* kernel : {&op.forward, &op.backward_input}) {
      kernel->casts += Bytes(read * (stored + input));
      kernel->launches += 1;
    }
  }
}

// With Y = X W, X: [m, k], W: [k, n]: dX = dY W^T is [m, n] x [n, k]; dW^T = dY^T X is [n, m] x [m, k].
Operator linear_gemms(const Sizes& z, const Linear& l) {
  const double n = real(l.n), k = real(l.k), weight = k * n;
  const double input = l.wide ? z.element : z.matrix_element;
  const double output = l.output > 0.0 ? l.output : z.element;
  const double gradient = l.output > 0.0 ? l.output : input;  // of Y
  const std::int64_t groups = std::max<std::int64_t>(1, ceiling(l.groups_read));
  const LinearShape shape{l.rows, groups, l.wide ? z.wide : z.precision, l.expert && groups > 1};
  const std::int64_t m = ceiling(l.rows / real(groups));
  const double volume = l.rows * weight;
  Operator op;
  op.name = l.names.base;
  op.tag = l.tag;
  op.expert = l.expert;
  op.wide = l.wide;
  op.forward =
      linear_gemm(shape, m, l.n, l.k, volume, (l.rows * k + l.groups_read * weight) * input + l.rows * n * output);
  op.backward_input = linear_gemm(shape, m, l.k, l.n, volume,
                                  l.rows * n * gradient + l.groups_read * weight * input + l.rows * k * z.element);
  op.backward_weight =
      linear_gemm(shape, l.n, l.k, m, volume,
                  l.rows * n * gradient + l.rows * k * input + real(l.groups) * weight * z.gradient_traffic);
  op.forward.held.weights = op.backward_input.held.weights = Bytes(l.groups_read * weight * input);
  op.backward_weight.held.gradients = Bytes(real(l.groups) * weight * z.gradient_traffic);
  if (input < z.element) { append_casts(op, z, l); }
  // Only the forward GEMM keeps partial sums in the matrix units: Transformer Engine (_2X_ACC_DGRAD and _2X_ACC_WGRAD
  // of its module base) and torchao (use_fast_accum of its float8 configuration).
  if (shape.precision == hardware::Precision::fp8) {
    op.backward_input.split_accumulation = op.backward_weight.split_accumulation = true;
  }
  if (!l.wide && z.scales == hardware::Fp8Recipe::block) {
    for (Kernel* kernel : {&op.forward, &op.backward_input, &op.backward_weight}) { kernel->block_scaled = true; }
  }
  read_stored_weights(op, z, l, input);
  return op;
}

// Whether the quantisation leaves out a GEMM.
bool is_left_out(const Sizes& z, const Linear& l) {
  const bool attends = l.tag == OperatorTag::attention_projection || l.tag == OperatorTag::attention_up_projection;
  switch (z.quantized) {
    case Quantized::all: return false;
    case Quantized::but_qkv: return attends && !l.output_projection;
    case Quantized::but_attention: return attends;
    case Quantized::experts: return !l.expert;
  }
  return false;
}

// One factor of an adapter: X[rows, k] times [k, n] for every group, in the wide precision. `kept`: elements of X, made
// by operators with tag `from`.
Operator factor(const Sizes& z, const Linear& base, std::string_view name, std::int64_t n, std::int64_t k, double kept,
                OperatorTag from) {
  Linear l;
  l.names.base = name;
  l.tag = base.tag;
  l.rows = base.rows;
  l.n = n;
  l.k = k;
  l.wide = true;
  l.adapter = true;
  l.expert = base.expert;
  l.groups = base.groups;
  l.groups_read = base.groups_read;
  Operator op = linear_gemms(z, l);
  op.parameters = real(l.groups) * real(n) * real(k);
  op.matrices = {real(l.groups), k, n};
  save_input(op, kept * z.element, from);
  return op;
}

}  // namespace

std::int64_t vocabulary_rows(const Model& model, std::int64_t tp) {
  return ceil_div(model.vocab, kVocabMultiple * tp) * kVocabMultiple;
}

double narrowest_element(hardware::Precision precision, const std::optional<hardware::StorageFormat>& weights) {
  const double element = hardware::element_size(precision).value();
  return weights ? std::min(element, hardware::element_size(*weights).value()) : element;
}

Quantized quantized_layers(const Model& model, std::optional<Quantized> given, hardware::Precision precision,
                           const Formats& formats) {
  if (given) { return *given; }
  return narrowest_element(precision, formats.weights) < 1.0 ? model.quantized_4_bit : Quantized::all;
}

bool names_quantized(const Model& model, hardware::Precision precision, const Formats& formats) {
  return formats.quantized != Quantized::all || quantized_layers(model, {}, precision, formats) != Quantized::all;
}

std::string checkpoint_warning(const Model& model, hardware::Precision precision, const Formats& formats) {
  const Checkpoint& checkpoint = model.checkpoint;
  if (checkpoint.method.empty()) { return {}; }
  const std::string_view priced = formats.weights ? hardware::name_of(*formats.weights) : hardware::name_of(precision);
  if (!checkpoint.weights) {
    return fmt::format(
        "the checkpoint is quantised (quantization_config: {}) in a format that is not known: its "
        "weights are priced in {}; give --precision or --weight-format",
        checkpoint.method, priced);
  }
  const std::string_view stored = hardware::name_of(*checkpoint.weights);
  if (stored == priced) { return {}; }
  const bool has_inputs = checkpoint.inputs && hardware::name_of(*checkpoint.inputs) == stored;
  return fmt::format("the checkpoint has weights in {} (quantization_config: {}), and {} is priced; give {}", stored,
                     checkpoint.method, priced,
                     has_inputs
                         ? fmt::format("--precision {0}, or --weight-format {0} if GEMMs compute in more bits", stored)
                         : fmt::format("--weight-format {}", stored));
}

WeightElements weight_elements(hardware::Precision precision, const Formats& formats) {
  const double element = hardware::element_size(precision).value(), wide = std::max(element, kNarrowestActivation);
  const double scale = precision == hardware::Precision::fp4 ? 1.0 / real(formats.fp4_block) : 0.0;
  const bool is_same = formats.weights == hardware::StorageFormat::fp4 && precision == hardware::Precision::fp4;
  if (!formats.weights || is_same) { return {element + scale, wide, scale}; }
  const double stored = hardware::element_size(*formats.weights).value();
  return {stored, stored < kNarrowestActivation ? wide : stored};
}

double cache_element(hardware::Precision precision, const Formats& formats, bool narrow) {
  if (formats.cache) { return hardware::element_size(*formats.cache).value(); }
  const bool follows = narrow && !hardware::is_integer(precision);  // int8: a recipe of weights and activations only
  return std::max(hardware::element_size(precision).value(), follows ? kNarrowestCache : kNarrowestActivation);
}

Heads heads_of_rank(const Model& model, const Slice& slice) {
  const Heads all = slice.pads_heads ? padded_heads(model, slice.tp) : Heads{model.heads, model.kv_heads};
  return {all.query / slice.tp, ceil_div(all.kv, slice.tp)};
}

Sizes sizes_of(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  expect_whole_parts(model, slice);
  Sizes z;
  z.sequences = slice.micro_batch;
  z.seq = slice.seq;
  z.own_seq = slice.seq / slice.cp;
  z.tokens = real(z.sequences * z.own_seq);
  z.split_tokens = slice.sequence_parallel ? z.tokens / real(slice.tp) : z.tokens;
  z.context = slice.context;
  z.hidden = model.hidden;
  const Heads heads = heads_of_rank(model, slice);
  z.heads = heads.query;
  z.kv_heads = heads.kv;
  z.head_dim = model.head_dim;
  z.vocab = vocabulary_rows(model, slice.tp);
  z.tp = slice.tp;
  z.cp = slice.cp;
  z.ep = slice.ep;
  z.etp = slice.etp;
  z.ulysses = slice.cp > 1 && slice.cp_method == ContextMethod::ulysses;
  z.training = slice.pass == Pass::train;
  z.decoding = slice.pass == Pass::decode;
  z.dropout = z.training ? model.dropout : 0.0;
  z.matrix_element = hardware::element_size(slice.precision).value();
  z.element = std::max(z.matrix_element, kNarrowestActivation);
  z.cache_element = cache_element(slice.precision, slice.formats, stack.storage.narrow_cache);
  const WeightElements weights = weight_elements(slice.precision, slice.formats);
  z.weight_element = weights.layers - weights.scale;
  z.weight_scale = weights.scale;
  z.end_element = weights.ends;
  const bool has_two_formats = z.matrix_element < z.element && !z.ulysses && slice.adapter.rank == 0;
  z.shared_output = has_two_formats ? stack.storage.attention_output_element.value() : 0.0;
  z.gradient_traffic = stack.fusion.gradient_accumulation ? 2.0 * stack.gradients.element.value() : z.element;
  z.precision = slice.precision;
  z.wide = z.matrix_element < kNarrowestActivation ? hardware::Precision::bf16 : slice.precision;
  z.attention = slice.formats.attention.value_or(z.wide);
  z.quantized = slice.formats.quantized;
  z.wide_absorption = slice.formats.wide_absorption;
  z.expert_imbalance = slice.ep > 1 ? slice.expert_imbalance : 1.0;
  if (slice.precision == hardware::Precision::fp8) { z.scales = stack.fp8_recipe; }
  z.adapter_rank = z.training ? slice.adapter.rank : 0;
  z.adapts_all = slice.adapter.targets == Adapter::Targets::all;
  return z;
}

Kernel gemm(const GemmShape& shape, hardware::Precision precision) {
  const double batch = real(shape.batch), m = real(shape.m), n = real(shape.n), k = real(shape.k);
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = precision;
  kernel.batch = shape.batch;
  kernel.m = shape.m;
  kernel.n = shape.n;
  kernel.k = shape.k;
  kernel.flops = Flops(2.0 * batch * m * n * k);
  kernel.bytes = Bytes(batch * ((m * k + k * n) * shape.input + m * n * shape.output));
  return kernel;
}

Kernel stream(double bytes, int launches) {
  Kernel kernel;
  kernel.kind = KernelKind::stream;
  kernel.bytes = Bytes(bytes);
  kernel.launches = launches;
  return kernel;
}

void append_linear(std::vector<Operator>& list, const Sizes& z, const Linear& l) {
  if (!l.wide && is_left_out(z, l)) {
    Linear wide = l;
    wide.wide = true;
    append_linear(list, z, wide);
    return;
  }
  const bool adapts = z.frozen() && l.adapted;
  const std::int64_t r = z.adapter_rank;
  if (adapts) {
    Operator& in = list.emplace_back(factor(z, l, l.names.adapter_in, r, l.k, l.input, l.input_from));
    in.backward_input.bytes += Bytes(l.rows * real(l.k) * z.element);  // adds to the gradient of the base GEMM
  }
  Operator& op = list.emplace_back(linear_gemms(z, l));
  const double weights = real(l.groups) * real(l.k) * real(l.n) + l.bias;
  hold(op, z, weights);
  op.saved = Bytes(l.kept);
  if (z.frozen()) {
    op.backward_weight = {};
  } else {
    op.matrices = {real(l.groups), l.k, l.n};
    const double as_read = l.wide ? z.element : z.matrix_element;
    op.saved_input = Bytes(l.input * (l.input_element > 0.0 ? l.input_element : as_read));
    op.input_from = l.input_from;
    op.saved += op.saved_input;
  }
  if (adapts) {
    Operator& out = list.emplace_back(factor(z, l, l.names.adapter_out, l.n, r, l.rows * real(r), l.tag));
    out.forward.bytes += Bytes(l.rows * real(l.n) * z.element);  // adds to the output of the base GEMM
  }
}

Operator streamed(OperatorTag tag, std::string_view name, const Kernel& forward, const Kernel& backward) {
  Operator op;
  op.name = name;
  op.tag = tag;
  op.forward = forward;
  op.backward_input = backward;
  return op;
}

Operator boundary(OperatorTag tag, std::string_view name, Boundary kind, double bytes) {
  Operator op;
  op.name = name;
  op.tag = tag;
  op.boundary = kind;
  op.boundary_bytes = Bytes(bytes);
  return op;
}

void save_input(Operator& op, double bytes, OperatorTag from) {
  op.saved = op.saved_input = Bytes(bytes);
  op.input_from = from;
}

void hold(Operator& op, const Sizes& z, double weights) { (z.frozen() ? op.frozen : op.parameters) = weights; }

Operator norm(OperatorTag tag, std::string_view name, const Model& model, const Sizes& z, double rows,
              std::int64_t width) {
  const double tensor = rows * real(width) * z.element;
  Operator op = streamed(tag, name, stream(2.0 * tensor), stream(3.0 * tensor, z.frozen() ? 1 : 2));
  const double vectors = model.norm == Normalisation::layernorm ? 2.0 : 1.0;  // scale and shift, or scale alone
  hold(op, z, vectors * real(width));
  save_input(op, tensor, tag);
  return op;
}

Operator norm(std::string_view name, const Model& model, const Sizes& z) {
  Operator op = norm(OperatorTag::norm, name, model, z, z.split_tokens, z.hidden);
  op.input_from = OperatorTag::residual;
  return op;
}

void keep_forward_only(std::vector<Operator>& list) {
  for (auto& op : list) {
    op.backward_input = {};
    op.backward_weight = {};
    op.saved = op.saved_input = Bytes(0.0);
  }
}

}  // namespace orrery::workload
