// Attention: projections, rotary positions and the core, plain or fused.
//
// Saved tensors follow Korthikanti et al. (arXiv:2205.05198, section 4.1). Queries, keys and values are counted with
// the projection that makes them, so that the operators marked attention_core hold exactly what selective recompute
// drops: 5 a s^2 b / t bytes of a plain core with dropout and two-byte elements.
#include <vector>

#include "orrery/workload/operators_kernels.hpp"

namespace orrery::workload {

namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

// Bytes of the tensors around the core of one rank.
struct CoreTensors {
  double query = 0;   // [tokens, a d]; also the context and the output of the core
  double key = 0;     // [tokens, kv d]; also the values
  double scores = 0;  // elements of [b, a, s, s]
  double element = 0;
};

CoreTensors core_tensors(const Sizes& z) {
  return {z.tokens * z.query_width() * z.element, z.tokens * z.kv_width() * z.element,
          real(z.sequences * z.heads) * real(z.seq) * real(z.seq), z.element};
}

// Two products of the same shape that the backward pass launches apart, as one kernel with twice the batch.
Kernel pair_of_products(const Sizes& z, Product product, double bytes) {
  product.batch *= 2;
  Kernel kernel = gemm(product, z.wide);
  kernel.bytes = Bytes(bytes);
  kernel.launches = 2;
  return kernel;
}

// S = Q K^T. Backward: dQ = dS K and dK = dS^T Q; each reads dS.
Operator scores(const Sizes& z) {
  const CoreTensors t = core_tensors(z);
  const std::int64_t batch = z.sequences * z.heads;
  Operator op;
  op.name = "attention.scores";
  op.forward = gemm({batch, z.seq, z.seq, z.head_dim}, z.wide);
  op.forward.bytes = Bytes(t.query + t.key + t.scores * t.element);
  op.backward_input =
      pair_of_products(z, {batch, z.seq, z.head_dim, z.seq}, 2.0 * t.scores * t.element + 2.0 * t.query + 2.0 * t.key);
  op.attention_core = true;
  return op;
}

// Softmax of the scaled and masked scores; keeps its output. Apart: scale, mask and softmax each pass through memory.
Operator softmax(const Sizes& z, bool fused) {
  const CoreTensors t = core_tensors(z);
  const double pass = t.scores * t.element;
  Operator op = fused ? streamed("attention.softmax", stream(2.0 * pass), stream(3.0 * pass))
                      : streamed("attention.softmax", stream(6.0 * pass, 3), stream(7.0 * pass, 3));
  op.saved = Bytes(pass);
  op.attention_core = true;
  return op;
}

// Dropout of the probabilities; keeps its mask, one byte per element.
Operator probability_dropout(const Sizes& z) {
  const CoreTensors t = core_tensors(z);
  const Kernel pass = stream(t.scores * (2.0 * t.element + 1.0));
  Operator op = streamed("attention.dropout", pass, pass);
  op.saved = Bytes(t.scores);
  op.attention_core = true;
  return op;
}

// O = P V. Backward: dP = dO V^T and dV = P^T dO; each reads dO. Keeps P, unless the softmax has kept the same tensor.
Operator context(const Sizes& z, bool after_dropout) {
  const CoreTensors t = core_tensors(z);
  const std::int64_t batch = z.sequences * z.heads;
  Operator op;
  op.name = "attention.context";
  op.forward = gemm({batch, z.seq, z.head_dim, z.seq}, z.wide);
  op.forward.bytes = Bytes(t.scores * t.element + t.key + t.query);
  op.backward_input =
      pair_of_products(z, {batch, z.seq, z.seq, z.head_dim}, 2.0 * t.query + 2.0 * t.key + 2.0 * t.scores * t.element);
  op.saved = Bytes(after_dropout ? t.scores * t.element : 0.0);
  op.attention_core = true;
  return op;
}

// Fused attention (Dao, arXiv:2205.14135, arXiv:2307.08691). Forward: 2 products of b a s^2 d. Backward: 5, the scores
// being computed again, so 2.5 times the forward; three launches: row sums of dO O, the gradients, dQ rounded to its
// element. Keeps the fp32 log-sum-exp of each row. Its output is kept by the output projection, except where
// that projection keeps a narrower copy.
Operator flash(const Sizes& z, bool causal_skip) {
  const CoreTensors t = core_tensors(z);
  const double rows = real(z.sequences * z.heads * z.seq);
  const double log_sum_exp = 4.0 * rows;
  Kernel forward;
  forward.kind = KernelKind::attention;
  forward.precision = z.wide;
  forward.batch = z.sequences * z.heads;
  forward.m = forward.n = z.seq;
  forward.k = z.head_dim;
  forward.flops = Flops((causal_skip ? 0.5 : 1.0) * 4.0 * rows * real(z.seq) * real(z.head_dim));
  forward.bytes = Bytes(2.0 * t.query + 2.0 * t.key + log_sum_exp);
  Kernel backward = forward;
  backward.flops = 2.5 * forward.flops;
  backward.bytes = Bytes(4.0 * t.query + 4.0 * t.key + log_sum_exp);  // q k v o do in, dq dk dv out
  backward.launches = 3;
  Operator op = streamed("attention.flash", forward, backward);
  op.saved = Bytes(log_sum_exp + (z.matrix_element < z.element ? t.query : 0.0));
  op.attention_core = true;
  return op;
}

// x cos + rotate(x) sin over queries and keys, one kernel each; apart: two products, a rotation and a sum, 9 passes.
Operator rotary(const Sizes& z, bool fused) {
  const double tensors = z.tokens * (z.query_width() + z.kv_width()) * z.element;
  const Kernel pass = fused ? stream(2.0 * tensors, 2) : stream(9.0 * tensors, 8);
  return streamed("attention.rotary", pass, pass);
}

Operator query_key_value(const Model& model, const Sizes& z) {
  const std::int64_t width = (z.heads + 2 * z.kv_heads) * z.head_dim;
  Operator op = linear("attention.qkv", z, width, z.hidden);
  if (model.qkv_bias) { op.parameters += real(width); }
  const double input = z.split_tokens * real(z.hidden) * z.matrix_element;
  op.saved = Bytes(input + z.tokens * real(width) * z.element);  // its input, and q, k, v for the core
  return op;
}

Operator output_projection(const Sizes& z) {
  const std::int64_t width = z.heads * z.head_dim;
  Operator op = linear("attention.output", z, z.hidden, width);
  op.saved = Bytes(z.tokens * z.query_width() * z.matrix_element);
  return op;
}

}  // namespace

void append_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  const bool fused = stack.fused_elementwise;
  list.push_back(query_key_value(model, z));
  if (model.position == Position::rotary) { list.push_back(rotary(z, fused)); }
  if (stack.attention == hardware::AttentionKernel::flash) {
    list.push_back(flash(z, stack.causal_skip));
  } else {
    const bool dropout = model.dropout > 0.0;
    list.push_back(scores(z));
    list.push_back(softmax(z, fused));
    if (dropout) { list.push_back(probability_dropout(z)); }
    list.push_back(context(z, dropout));
  }
  list.push_back(output_projection(z));
}

}  // namespace orrery::workload
