// Attention: projections, rotary positions and norms of heads around the core; of a layer, and of a decoder that
// attends to an encoder's output.
//
// Saved tensors follow Korthikanti et al. (arXiv:2205.05198, section 4.1). Queries, keys and values are counted with
// the projection that makes them, so that the operators tagged attention_core keep exactly what selective recompute
// drops: 5 a s^2 b / t bytes for a plain core with dropout and two-byte elements.
#include <vector>

#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

#include "orrery/core/integers.hpp"

namespace orrery::workload {

namespace {

constexpr Core::Names kSelf{"attention.scores",   "attention.softmax",  "attention.dropout",
                            "attention.context",  "attention.flash",    "attention.decode",
                            "attention.exchange", "attention.to_heads", "attention.to_sequence"};
constexpr Core::Names kCross{"cross.scores", "cross.softmax",  "cross.dropout",  "cross.context",    "cross.flash",
                             "cross.decode", "cross.exchange", "cross.to_heads", "cross.to_sequence"};

constexpr Linear::Names kQueryKeyValue{"attention.qkv", "attention.qkv.adapter_in", "attention.qkv.adapter_out"};
constexpr Linear::Names kOutput{"attention.output", "attention.output.adapter_in", "attention.output.adapter_out"};
constexpr Linear::Names kCrossQuery{"cross.query", "cross.query.adapter_in", "cross.query.adapter_out"};
constexpr Linear::Names kCrossMemory{"cross.memory", "cross.memory.adapter_in", "cross.memory.adapter_out"};
constexpr Linear::Names kCrossOutput{"cross.output", "cross.output.adapter_in", "cross.output.adapter_out"};

Core core_of(const Model& model, const Sizes& z) {
  Core core;
  core.names = &kSelf;
  core.heads = z.heads;
  core.kv_heads = z.kv_heads;
  core.key_dim = core.value_dim = z.head_dim;
  core.relative = model.position == Position::relative;
  return core;
}

// x cos + rotate(x) sin over queries and keys, one kernel each; not fused: two multiplications, a rotation and a sum, 9
// passes.
Operator rotary(const Sizes& z, bool fused) {
  const double tensors = z.whole((z.heads + z.kv_heads) * z.head_dim) * z.element;
  const Kernel pass = fused ? stream(2.0 * tensors, 2) : stream(9.0 * tensors, 8);
  return streamed(OperatorTag::attention_projection, "attention.rotary", pass, pass);
}

// Norms of each head of the queries and of the keys, two kernels, with one weight vector for all heads of either; or of
// all heads together, each with its own weights (OLMo 2).
Operator head_norms(std::string_view name, const Model& model, const Sizes& z) {
  Operator op = norm(OperatorTag::attention_projection, name, model, z, z.whole(z.heads + z.kv_heads), z.head_dim);
  const double vectors = model.norm == Normalisation::layernorm ? 2.0 : 1.0;
  hold(op, z, vectors * real(model.qk_norm_wide ? (z.heads + z.kv_heads) * z.head_dim : 2 * z.head_dim));
  op.forward.launches *= 2;
  op.backward_input.launches *= 2;
  return op;
}

// Output times the sigmoid of its gate; keeps the output before it.
Operator output_gate(const Sizes& z) {
  const double tensor = z.whole(z.heads * z.head_dim) * z.element;
  Operator op =
      streamed(OperatorTag::attention_projection, "attention.gate", stream(3.0 * tensor), stream(5.0 * tensor));
  save_input(op, tensor, OperatorTag::residual);  // replaying the core alone keeps its output
  return op;
}

// GEMM X W with `width` columns on this rank, on the whole tokens after an `enter`.
Linear projection(const Linear::Names& names, const Model& model, const Sizes& z, std::int64_t width) {
  Linear l;
  l.names = names;
  l.tag = OperatorTag::attention_projection;
  l.rows = z.tokens;
  l.n = width;
  l.k = z.hidden;
  l.input = z.split(z.hidden);
  l.bias = model.qkv_bias ? real(width) : 0.0;
  l.adapted = true;
  return l;
}

// Copies of a prompt between the layout of tokens, which GEMMs have, and that of heads, which attention and the cache
// have: queries, keys and values into heads (one kernel), keys and values into the cache (one each). In place: one
// kernel rotates queries and keys where they are and writes keys and values to the cache.
void append_copies(std::vector<Operator>& list, const Sizes& z, const CoreTensors& t, bool in_place) {
  const double kept = t.key + t.value;
  const double cached = kept / z.element * z.cache_element;
  const auto add = [&](std::string_view name, const Kernel& kernel) {
    list.push_back(streamed(OperatorTag::attention_projection, name, kernel, {}));
  };
  if (in_place) {
    add("attention.cache", stream(2.0 * (t.query + kept) + cached));
    return;
  }
  add("attention.split", stream(2.0 * (t.query + kept)));
  add("attention.cache", stream(kept + cached, 2));
}

// The result, in heads, back into tokens.
Operator joined_heads(const CoreTensors& t) {
  return streamed(OperatorTag::attention_projection, "attention.join_heads", stream(2.0 * t.output), {});
}

void append_output(std::vector<Operator>& list, const Linear::Names& names, const Sizes& z) {
  Linear l;
  l.names = names;
  l.tag = OperatorTag::attention_projection;
  l.rows = z.tokens;
  l.n = z.hidden;
  l.k = z.heads * z.head_dim;
  l.input = z.whole(l.k);
  l.input_from = OperatorTag::residual;  // replaying the core alone keeps its output
  l.input_element = z.shared_output;
  l.output_projection = true;
  l.adapted = true;
  append_linear(list, z, l);
}

// Keys and values of the encoder's output, with the same number of tokens. That tensor is the same for all decoder
// layers and not counted in any of them. A decode step reads them from the cache.
void append_memory(std::vector<Operator>& list, const Model& model, const Sizes& z, double kept) {
  if (z.decoding) { return; }
  list.push_back(boundary(OperatorTag::attention_projection, "cross.memory_enter", Boundary::enter,
                          z.whole(z.hidden) * z.element));
  Linear memory = projection(kCrossMemory, model, z, 2 * z.kv_heads * z.head_dim);
  memory.input = 0.0;
  memory.kept = kept;
  append_linear(list, z, memory);
}

}  // namespace

void append_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                      const LayerKind& kind) {
  Core core = core_of(model, z);
  core.causal = !kind.encoder;
  core.window = kind.window;
  const CoreTensors t = core_tensors(z, core);
  list.push_back(
      boundary(OperatorTag::attention_projection, "attention.enter", Boundary::enter, z.whole(z.hidden) * z.element));
  const std::int64_t queries = (model.attention_gate ? 2 : 1) * z.heads;
  Linear qkv = projection(kQueryKeyValue, model, z, (queries + 2 * z.kv_heads) * z.head_dim);
  qkv.kept = t.query + t.key + t.value + (model.attention_gate ? t.output : 0.0);  // for the core and its gate
  append_linear(list, z, qkv);
  if (model.qk_norm && model.qk_norm_wide) {  // sums of squares of the heads of all ranks, fp32
    list.push_back(boundary(OperatorTag::attention_projection, "attention.qk_norm_sum", Boundary::reduce,
                            2.0 * z.tokens * kFloat));
  }
  if (model.qk_norm) { list.push_back(head_norms("attention.qk_norm", model, z)); }
  // An engine whose kernel of generated tokens rotates rotates a prompt in the kernel that splits it, or that writes
  // its keys and values to the cache.
  const bool rotated_in_core = !z.training && stack.fusion.decode_rotary;
  if (model.position == Position::rotary && !rotated_in_core) { list.push_back(rotary(z, stack.fusion.elementwise)); }
  const bool is_prompt = !z.training && !z.decoding;
  const bool copies_heads = is_prompt && !stack.fusion.heads;
  if (copies_heads || (is_prompt && rotated_in_core)) { append_copies(list, z, t, !copies_heads); }
  append_core(list, stack, z, core);
  if (copies_heads) { list.push_back(joined_heads(t)); }
  if (model.attention_gate) { list.push_back(output_gate(z)); }
  append_output(list, kOutput, z);
}

void append_cross_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                            const Sizes& z) {
  Core core = core_of(model, z);
  core.names = &kCross;
  core.causal = false;
  core.relative = false;
  core.fixed_keys = true;
  const CoreTensors t = core_tensors(z, core);
  append_memory(list, model, z, t.key + t.value);
  list.push_back(
      boundary(OperatorTag::attention_projection, "cross.enter", Boundary::enter, z.whole(z.hidden) * z.element));
  Linear query = projection(kCrossQuery, model, z, z.heads * z.head_dim);
  query.kept = t.query;
  append_linear(list, z, query);
  if (model.qk_norm) { list.push_back(head_norms("cross.qk_norm", model, z)); }
  append_core(list, stack, z, core);
  append_output(list, kCrossOutput, z);
}

}  // namespace orrery::workload
