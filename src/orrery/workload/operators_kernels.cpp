#include "orrery/workload/operators_kernels.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::workload {

namespace {

// Megatron-LM pads the vocabulary to a multiple of make_vocab_size_divisible_by (128) times t, so that every rank holds
// the same number of rows and matrix products meet whole tiles.
constexpr std::int64_t kVocabMultiple = 128;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double real(std::int64_t n) { return static_cast<double>(n); }

struct Input {
  hardware::Precision precision;
  double element;
};

// With Y = X W, X: [m, k], W: [k, n]: dX = dY W^T is [m, n] x [n, k]; dW^T = dY^T X is [n, m] x [m, k].
Operator products(std::string_view name, const Sizes& z, std::int64_t n, std::int64_t k, Input input) {
  Operator op;
  op.name = name;
  op.forward = gemm({1, z.rows, n, k, input.element, z.element}, input.precision);
  op.backward_input = gemm({1, z.rows, k, n, input.element, z.element}, input.precision);
  op.backward_weight = gemm({1, n, k, z.rows, input.element, z.gradient_traffic}, input.precision);
  op.parameters = real(k) * real(n);
  return op;
}

}  // namespace

std::int64_t vocabulary_rows(const Model& model, std::int64_t tp) {
  return ceil_div(model.vocab, kVocabMultiple * tp) * kVocabMultiple;
}

Sizes sizes_of(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  ORRERY_ASSERT(slice.tp >= 1 && slice.micro_batch >= 1 && slice.seq >= 1);
  ORRERY_ASSERT(model.heads % slice.tp == 0 && model.ffn % slice.tp == 0);
  constexpr double kNarrowestActivation = 2.0;
  Sizes sizes;
  sizes.rows = slice.micro_batch * slice.seq;
  sizes.tokens = real(sizes.rows);
  sizes.split_tokens = slice.sequence_parallel ? sizes.tokens / real(slice.tp) : sizes.tokens;
  sizes.sequences = slice.micro_batch;
  sizes.seq = slice.seq;
  sizes.hidden = model.hidden;
  sizes.heads = model.heads / slice.tp;
  sizes.kv_heads = ceil_div(model.kv_heads, slice.tp);
  sizes.head_dim = model.head_dim;
  sizes.ffn = model.ffn / slice.tp;
  sizes.vocab = vocabulary_rows(model, slice.tp);
  sizes.matrix_element = hardware::element_size(slice.precision).value();
  sizes.element = std::max(sizes.matrix_element, kNarrowestActivation);
  sizes.gradient_traffic = stack.fused_gradient_accumulation ? 2.0 * stack.gradient_element.value() : sizes.element;
  sizes.precision = slice.precision;
  sizes.wide = sizes.matrix_element < kNarrowestActivation ? hardware::Precision::bf16 : slice.precision;
  return sizes;
}

Kernel gemm(const Product& p, hardware::Precision precision) {
  const double batch = real(p.batch), m = real(p.m), n = real(p.n), k = real(p.k);
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = precision;
  kernel.batch = p.batch;
  kernel.m = p.m;
  kernel.n = p.n;
  kernel.k = p.k;
  kernel.flops = Flops(2.0 * batch * m * n * k);
  kernel.bytes = Bytes(batch * ((m * k + k * n) * p.input + m * n * p.output));
  return kernel;
}

Kernel stream(double bytes, int launches) {
  Kernel kernel;
  kernel.kind = KernelKind::stream;
  kernel.bytes = Bytes(bytes);
  kernel.launches = launches;
  return kernel;
}

Operator linear(std::string_view name, const Sizes& z, std::int64_t n, std::int64_t k) {
  return products(name, z, n, k, {z.precision, z.matrix_element});
}

Operator wide_linear(std::string_view name, const Sizes& z, std::int64_t n, std::int64_t k) {
  return products(name, z, n, k, {z.wide, z.element});
}

Operator streamed(std::string_view name, const Kernel& forward, const Kernel& backward) {
  Operator op;
  op.name = name;
  op.forward = forward;
  op.backward_input = backward;
  return op;
}

Operator boundary(std::string_view name, Boundary kind, Bytes bytes) {
  Operator op;
  op.name = name;
  op.boundary = kind;
  op.boundary_bytes = bytes;
  return op;
}

Operator norm(std::string_view name, const Model& model, const Sizes& sizes) {
  const double tensor = sizes.split_tokens * real(sizes.hidden) * sizes.element;
  Operator op = streamed(name, stream(2.0 * tensor), stream(3.0 * tensor, 2));
  const double vectors = model.norm == Normalisation::layernorm ? 2.0 : 1.0;  // scale and shift, or scale alone
  op.parameters = vectors * real(sizes.hidden);
  op.saved = Bytes(tensor);
  return op;
}

}  // namespace orrery::workload
