// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): queries, keys and values are projected down
// to narrow latents and up again; one rotary key part serves all heads.
//
// Every tensor-parallel rank holds all weights of the down-projections and applies them to its split tokens, so that
// `attention.enter` gathers the narrow tensor (Megatron-LM core, multi_latent_attention.py). Training and prefill
// project latents up to ordinary heads. A decode step works on the latent cache itself, which all heads of a rank
// share: W_uk is absorbed in the queries, W_uv follows the core (section 2.1.2 and appendix C).
#include <vector>

#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

namespace {

constexpr Core::Names kCore{"attention.scores",   "attention.softmax",  "attention.dropout",
                            "attention.context",  "attention.flash",    "attention.decode",
                            "attention.exchange", "attention.to_heads", "attention.to_sequence"};

constexpr Linear::Names kQuery{"attention.query", "attention.query.adapter_in", "attention.query.adapter_out"};
constexpr Linear::Names kQueryDown{"attention.query_down", "attention.query_down.adapter_in",
                                   "attention.query_down.adapter_out"};
constexpr Linear::Names kQueryUp{"attention.query_up", "attention.query_up.adapter_in",
                                 "attention.query_up.adapter_out"};
constexpr Linear::Names kKvDown{"attention.kv_down", "attention.kv_down.adapter_in", "attention.kv_down.adapter_out"};
constexpr Linear::Names kKvUp{"attention.kv_up", "attention.kv_up.adapter_in", "attention.kv_up.adapter_out"};
constexpr Linear::Names kAbsorb{"attention.absorb", {}, {}};
constexpr Linear::Names kValueUp{"attention.value_up", {}, {}};
constexpr Linear::Names kLatentOutput{"attention.output", "attention.output.adapter_in",
                                      "attention.output.adapter_out"};

Linear projection(const Linear::Names& names, double rows, std::int64_t n, std::int64_t k, double input) {
  Linear l;
  l.names = names;
  l.tag = OperatorTag::attention_projection;
  l.rows = rows;
  l.n = n;
  l.k = k;
  l.input = input;
  l.adapted = true;
  return l;
}

// From a latent to the heads.
Linear up_projection(const Linear::Names& names, double rows, std::int64_t n, std::int64_t k, double input) {
  Linear l = projection(names, rows, n, k, input);
  l.tag = OperatorTag::attention_up_projection;
  l.input_from = OperatorTag::attention_projection;
  return l;
}

// The same GEMM for every head, each with its own weights.
Linear per_head(const Linear::Names& names, const Sizes& z, std::int64_t n, std::int64_t k) {
  Linear l = up_projection(names, z.whole(z.heads), n, k, 0.0);
  l.groups = z.heads;
  l.groups_read = real(z.heads);
  l.wide = z.wide_absorption;
  return l;
}

// The down-projections with their norms. Their common input is kept once.
void append_down(std::vector<Operator>& list, const Model& model, const Sizes& z) {
  const LatentAttention& latent = model.latent;
  double input = z.split(z.hidden);
  double gathered = real(latent.kv_rank + latent.rope_dim);
  if (latent.query_rank > 0) {
    append_linear(list, z, projection(kQueryDown, z.split_tokens, latent.query_rank, z.hidden, input));
    list.push_back(
        norm(OperatorTag::attention_projection, "attention.query_norm", model, z, z.split_tokens, latent.query_rank));
    input = 0.0;
    gathered += real(latent.query_rank);
  } else {
    gathered += real(z.hidden);
  }
  append_linear(list, z, projection(kKvDown, z.split_tokens, latent.kv_rank + latent.rope_dim, z.hidden, input));
  list.push_back(
      norm(OperatorTag::attention_projection, "attention.kv_norm", model, z, z.split_tokens, latent.kv_rank));
  list.push_back(
      boundary(OperatorTag::attention_projection, "attention.enter", Boundary::enter, z.tokens * gathered * z.element));
}

// Rotates the rotary part of every query head and of the shared key. With keys projected up, it also concatenates each
// key head with the shared part. Not fused: 9 passes over the rotated parts, 8 launches; a copy of queries and of keys.
Operator rotary(const LatentAttention& latent, const Sizes& z, bool fused) {
  const double rotated = z.whole((z.heads + 1) * latent.rope_dim) * z.element;
  const double key = z.whole(z.heads * (latent.nope_dim + latent.rope_dim)) * z.element;
  const double joined = z.decoding ? 0.0 : key + z.whole(z.heads * latent.nope_dim) * z.element;
  const Kernel pass = fused ? stream(2.0 * rotated + joined, 2)
                            : stream(9.0 * rotated + (z.decoding ? 0.0 : 4.0 * key), z.decoding ? 8 : 10);
  return streamed(OperatorTag::attention_up_projection, "attention.rotary", pass, pass);
}

Linear query_up(const LatentAttention& latent, const Sizes& z) {
  const std::int64_t width = z.heads * (latent.nope_dim + latent.rope_dim);
  if (latent.query_rank == 0) { return up_projection(kQuery, z.tokens, width, z.hidden, 0.0); }
  return up_projection(kQueryUp, z.tokens, width, latent.query_rank, z.split(latent.query_rank));
}

void append_widened(std::vector<Operator>& list, const hardware::Stack& stack, const LatentAttention& latent,
                    const Sizes& z, Core core) {
  core.kv_heads = z.heads;
  core.key_dim = latent.nope_dim + latent.rope_dim;
  core.value_dim = latent.value_dim;
  const CoreTensors t = core_tensors(z, core);
  Linear query = query_up(latent, z);
  query.kept = t.query;
  append_linear(list, z, query);
  Linear kv = up_projection(kKvUp, z.tokens, z.heads * (latent.nope_dim + latent.value_dim), latent.kv_rank,
                            z.split(latent.kv_rank));
  kv.kept = t.key + t.value;
  append_linear(list, z, kv);
  list.push_back(rotary(latent, z, stack.fusion.elementwise));
  append_core(list, stack, z, core);
}

void append_absorbed(std::vector<Operator>& list, const hardware::Stack& stack, const LatentAttention& latent,
                     const Sizes& z, Core core) {
  core.kv_heads = 1;
  core.key_dim = latent.kv_rank + latent.rope_dim;
  core.value_dim = latent.kv_rank;
  core.values_in_keys = true;
  append_linear(list, z, query_up(latent, z));
  append_linear(list, z, per_head(kAbsorb, z, latent.kv_rank, latent.nope_dim));
  list.push_back(rotary(latent, z, stack.fusion.elementwise));
  append_core(list, stack, z, core);
  append_linear(list, z, per_head(kValueUp, z, latent.value_dim, latent.kv_rank));
}

}  // namespace

void append_latent_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                             const Sizes& z, const LayerKind& kind) {
  Core core;
  core.names = &kCore;
  core.heads = z.heads;
  core.causal = !kind.encoder;
  core.window = kind.window;
  append_down(list, model, z);
  if (z.decoding) {
    append_absorbed(list, stack, model.latent, z, core);
  } else {
    append_widened(list, stack, model.latent, z, core);
  }
  const std::int64_t width = z.heads * model.latent.value_dim;
  Linear output = projection(kLatentOutput, z.tokens, z.hidden, width, z.whole(width));
  output.input_from = OperatorTag::residual;  // replaying the core alone keeps its output
  output.input_element = z.shared_output;
  output.output_projection = true;
  append_linear(list, z, output);
}

}  // namespace orrery::workload
