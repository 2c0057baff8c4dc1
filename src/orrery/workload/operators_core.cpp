// The attention core: scores, softmax and weighted sum of values; plain or fused, over a part of the sequence or of the
// heads, over whole sequences or one new position with a KV cache.
#include <algorithm>
#include <cmath>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

namespace {

// Speed of fused attention backward relative to forward: of its five GEMMs two run from registers that are free in
// forward (FlashAttention-2 on A100: 0.8 to 0.85; -3 on H100: 0.75).
constexpr double kBackwardRate = 0.8;

// Sizes that the core's kernels see, after context parallelism has redistributed heads and positions.
struct Arranged {
  std::int64_t batch = 0;    // sequences x heads
  std::int64_t queries = 0;  // positions of a sequence
  std::int64_t keys = 0;
  std::int64_t key_dim = 0, value_dim = 0;
  std::int64_t rounds = 1;  // steps in which the keys arrive, one kernel each
  CoreTensors own;
  double all_keys = 0, all_values = 0;  // bytes, of all ranks
  double scores = 0;                    // elements
  double bias = 0;                      // bytes of the bias added to scores
  double element = 0;
};

Arranged arrange(const Sizes& z, const Core& core) {
  const bool ring = z.cp > 1 && !z.ulysses;
  Arranged a;
  const std::int64_t heads = z.ulysses ? core.heads / z.cp : core.heads;
  a.batch = z.sequences * heads;
  a.queries = ring ? z.own_seq : z.seq;
  a.keys = z.seq;
  a.key_dim = core.key_dim;
  a.value_dim = core.value_dim;
  a.rounds = ring ? z.cp : 1;
  a.own = core_tensors(z, core);
  a.all_keys = real(a.rounds) * a.own.key;
  a.all_values = real(a.rounds) * a.own.value;
  a.scores = real(a.batch) * real(a.queries) * real(a.keys);
  a.bias = core.relative ? real(heads) * real(a.queries) * real(a.keys) * z.element : 0.0;
  a.element = z.element;
  return a;
}

// Two GEMMs of the same shape that backward launches separately, as one kernel with twice the batch.
Kernel two_gemms(const Sizes& z, GemmShape shape, double bytes) {
  shape.batch *= 2;
  Kernel kernel = gemm(shape, z.attention);
  kernel.bytes = Bytes(bytes);
  kernel.launches = 2;
  return kernel;
}

// S = Q K^T. Backward: dQ = dS K and dK = dS^T Q; each reads dS.
Operator scores(const Sizes& z, const Core& core, const Arranged& a) {
  const double once = a.own.query + a.all_keys + a.scores * a.element;
  Operator op;
  op.name = core.names->scores;
  op.forward = gemm({a.batch, a.queries, a.keys, a.key_dim}, z.attention);
  op.forward.bytes = Bytes(once);
  op.backward_input = two_gemms(z, {a.batch, a.queries, a.key_dim, a.keys}, 2.0 * once);
  op.tag = OperatorTag::attention_core;
  return op;
}

// Softmax of the scaled and masked scores; keeps its output. Not fused: scale, mask and softmax are separate passes
// through memory. A relative bias is read once, and its gradient, summed over sequences, is written; not fused, with an
// additional pass over the scores.
Operator softmax(const Core& core, const Arranged& a, bool fused) {
  const double pass = a.scores * a.element;
  Traffic forward = fused ? Traffic{2.0 * pass, 1} : Traffic{6.0 * pass, 3};
  Traffic backward = fused ? Traffic{3.0 * pass, 1} : Traffic{7.0 * pass, 3};
  if (core.relative) {
    forward += fused ? Traffic{a.bias, 0} : Traffic{2.0 * pass + a.bias, 1};
    backward += {pass + a.bias, 1};
  }
  Operator op = streamed(OperatorTag::attention_core, core.names->softmax, forward.kernel(), backward.kernel());
  op.saved = Bytes(pass);
  return op;
}

// Dropout of the probabilities; keeps its mask, one byte per element.
Operator probability_dropout(const Core& core, const Arranged& a) {
  const Kernel pass = stream(a.scores * (2.0 * a.element + 1.0));
  Operator op = streamed(OperatorTag::attention_core, core.names->dropout, pass, pass);
  op.saved = Bytes(a.scores);
  return op;
}

// O = P V. Backward: dP = dO V^T and dV = P^T dO; each reads dO. Keeps P, unless the softmax has kept the same tensor.
Operator context(const Sizes& z, const Core& core, const Arranged& a) {
  const double once = a.scores * a.element + a.all_values + a.own.output;
  Operator op;
  op.name = core.names->context;
  op.forward = gemm({a.batch, a.queries, a.value_dim, a.keys}, z.attention);
  op.forward.bytes = Bytes(once);
  op.backward_input = two_gemms(z, {a.batch, a.queries, a.keys, a.value_dim}, 2.0 * once);
  op.saved = Bytes(z.dropout > 0.0 ? a.scores * a.element : 0.0);
  op.tag = OperatorTag::attention_core;
  return op;
}

// Fused attention (Dao, arXiv:2205.14135, arXiv:2307.08691). Forward: Q K^T and P V. Backward: five products, the
// scores being computed again, of which three are as deep as a key head and two as a value head; three launches: row
// sums of dO O, the gradients, dQ rounded to its element. Keeps the fp32 log-sum-exp of each row. Its output is kept by
// the output projection, except where that projection keeps a narrower copy, or the output has changed its layout.
Operator flash(const Sizes& z, const Core& core, const Arranged& a, const hardware::Stack& stack) {
  const double s = real(z.seq);
  const double pairs =
      (stack.attention.causal_skip ? visible_pairs(s, real(core.window), core.causal) : s * s) / real(a.rounds);
  const double rows = real(a.batch) * real(a.queries);
  const double log_sum_exp = z.training ? kFloat * rows : 0.0;
  const double key_dim = real(a.key_dim), value_dim = real(a.value_dim);
  const double tensors = a.own.query + a.all_keys + a.all_values + a.own.output;
  Kernel forward;
  forward.kind = KernelKind::attention;
  forward.precision = z.attention;
  forward.batch = a.batch;
  forward.m = a.queries;
  forward.n = std::max<std::int64_t>(1, std::llround(pairs * real(a.rounds) / real(z.seq)));
  forward.k = (a.key_dim + a.value_dim) / 2;
  forward.flops = Flops(2.0 * real(a.batch) * pairs * (key_dim + value_dim));
  forward.bytes = Bytes(tensors + a.bias + log_sum_exp);
  forward.launches = static_cast<int>(a.rounds);
  forward.rate = stack.attention.rate;
  forward.native = stack.attention.native;
  Kernel backward = forward;
  backward.flops = Flops(2.0 * real(a.batch) * pairs * (3.0 * key_dim + 2.0 * value_dim));
  backward.bytes = Bytes(2.0 * (tensors + a.bias) + log_sum_exp);  // q k v o do in, dq dk dv out; the bias and its own
  backward.launches = 3 * forward.launches;
  backward.rate = kBackwardRate * forward.rate;
  const bool narrower_copy = z.matrix_element < z.element && !z.frozen() && z.shared_output == 0.0;
  Operator op = streamed(OperatorTag::attention_core, core.names->flash, forward, backward);
  op.saved = Bytes(log_sum_exp + (narrower_copy || z.ulysses ? a.own.output : 0.0));
  return op;
}

// One query per sequence and head over the cache, fused whatever kernel training uses. Query heads that share keys and
// values are rows of one GEMM, so the cache is read once: memory-bound.
Operator decode(const Sizes& z, const Core& core) {
  const std::int64_t past = core.fixed_keys ? std::max<std::int64_t>(z.context - 1, 1) : z.context;
  const std::int64_t keys = core.window > 0 ? std::min(past, core.window) : past;
  const double depth = real(core.key_dim + core.value_dim);
  const double rows = real(z.sequences * core.heads);
  const double held = real(core.kv_heads) * real(core.values_in_keys ? core.key_dim : core.key_dim + core.value_dim);
  Operator op;
  op.name = core.names->decode;
  op.tag = OperatorTag::attention_core;
  op.growth.flops = Flops(2.0 * rows * depth);
  op.growth.bytes = Bytes(real(z.sequences) * held * z.cache_element);
  op.forward.kind = KernelKind::attention;
  op.forward.precision = z.attention;
  op.forward.batch = z.sequences * core.kv_heads;
  op.forward.m = ceil_div(core.heads, core.kv_heads);
  op.forward.n = keys;
  op.forward.k = (core.key_dim + core.value_dim) / 2;
  op.forward.flops = real(keys) * op.growth.flops;
  op.forward.held.kv_cache = real(keys) * op.growth.bytes;
  op.forward.bytes = op.forward.held.kv_cache + Bytes(rows * depth * z.element);
  op.growth.n = 1;
  if (core.window > 0) { op.growth.most = core.window - keys; }
  if (core.fixed_keys || (core.window > 0 && keys == core.window)) { op.growth = {}; }
  return op;
}

void append_plain_core(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z, const Core& core) {
  const Arranged a = arrange(z, core);
  list.push_back(scores(z, core, a));
  list.push_back(softmax(core, a, stack.fusion.elementwise));
  if (z.dropout > 0.0) { list.push_back(probability_dropout(core, a)); }
  list.push_back(context(z, core, a));
}

// Ring: keys and values of all ranks are sent around the ring. Ulysses: all-to-all of this rank's queries, keys and
// values.
Operator arrival(const Sizes& z, const Core& core, const CoreTensors& t) {
  if (z.ulysses) {
    return boundary(OperatorTag::attention_projection, core.names->to_heads, Boundary::to_heads,
                    t.query + t.key + t.value);
  }
  return boundary(OperatorTag::attention_core, core.names->exchange, Boundary::exchange,
                  real(z.cp) * (t.key + t.value));
}

}  // namespace

double visible_pairs(double s, double window, bool causal) {
  const double w = window > 0.0 ? std::min(window, s) : s;
  return causal ? s * w - 0.5 * w * w : 2.0 * s * w - w * w;
}

CoreTensors core_tensors(const Sizes& z, const Core& core) {
  const std::int64_t parts = z.ulysses ? z.cp : 1;
  ORRERY_ASSERT(core.heads % parts == 0);
  // With fewer key-value heads than ranks, heads are replicated.
  const std::int64_t kv_heads = parts * ceil_div(core.kv_heads, parts);
  return {z.whole(core.heads * core.key_dim) * z.element, z.whole(kv_heads * core.key_dim) * z.element,
          z.whole(kv_heads * core.value_dim) * z.element, z.whole(core.heads * core.value_dim) * z.element};
}

void append_core(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z, const Core& core) {
  if (z.decoding) {
    list.push_back(decode(z, core));
    return;
  }
  if (z.cp > 1) { list.push_back(arrival(z, core, core_tensors(z, core))); }
  if (stack.attention.kernel == hardware::AttentionKernel::flash) {
    list.push_back(flash(z, core, arrange(z, core), stack));
  } else {
    append_plain_core(list, stack, z, core);
  }
  if (z.ulysses) {
    list.push_back(boundary(OperatorTag::attention_projection, core.names->to_sequence, Boundary::to_sequence,
                            core_tensors(z, core).output));
  }
}

}  // namespace orrery::workload
