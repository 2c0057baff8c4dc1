#include "orrery/workload/records.hpp"

namespace orrery::config {

using workload::Experts;
using workload::LatentAttention;
using workload::Mixer;
using workload::Model;
using workload::Rope;
using workload::Tower;
using workload::Vision;

namespace {

// Fields of nested values are named "experts.count"; places are named "/experts/count".
Objection inconsistency_of(const Model& model) {
  const auto wrong = workload::inconsistency(model);
  if (!wrong) { return {}; }
  std::string pointer = "/" + std::string(wrong->field);
  for (char& c : pointer) {
    if (c == '.') { c = '/'; }
  }
  return {pointer, wrong->message};
}

void add_sizes(Record<Model>& record) {
  record.optional("name", &Model::name, "name; default: the file name")
      .optional("description", &Model::description, "one line about the model")
      .required("layers", &Model::layers, "transformer layers; with an encoder, those of the decoder", {.min = 1})
      .optional("encoder_layers", &Model::encoder_layers, "layers of the encoder (T5); 0 = none", {.min = 0})
      .optional("mtp_layers", &Model::mtp_layers, "multi-token prediction modules (DeepSeek-V3)", {.min = 0})
      .required("hidden", &Model::hidden, "width of the residual stream", {.min = 1})
      .required("heads", &Model::heads, "query heads", {.min = 1})
      .optional("kv_heads", &Model::kv_heads, "key-value heads; 0 = heads", {.min = 0})
      .optional("head_dim", &Model::head_dim, "width of a head; 0 = hidden / heads", {.min = 0})
      .optional("ffn", &Model::ffn, "inner width of the MLP; optional when every layer has experts", {.min = 0})
      .optional("vocab", &Model::vocab, "rows of the stored embedding table; only vision models have none", {.min = 0})
      .optional("max_seq", &Model::max_seq, "longest sequence, tokens; vision: patches + 1", {.min = 0});
}

void add_choices(Record<Model>& record) {
  record.optional("gated_mlp", &Model::gated_mlp, "the MLP is gated: two input projections, act(a) b")
      .optional("tied_embeddings", &Model::tied_embeddings, "head and embedding share weights")
      .optional("qkv_bias", &Model::qkv_bias, "query, key and value projections have biases")
      .optional("attention_output_bias", &Model::attention_output_bias, "the output projection of attention has a bias")
      .optional("mlp_bias", &Model::mlp_bias, "the projections of the MLP, and of experts and router, have biases")
      .optional("qk_norm", &Model::qk_norm, "queries and keys are normalised per head")
      .optional("qk_norm_wide", &Model::qk_norm_wide, "... over all heads together, with a weight per channel (OLMo 2)")
      .optional("attention_gate", &Model::attention_gate, "a projected gate on the output of attention (Qwen3-Next)")
      .optional("pre_norms", &Model::pre_norms, "norms before attention and before the MLP")
      .optional("post_norms", &Model::post_norms, "additional norms after attention and after the MLP")
      .optional("causal", &Model::causal, "causal attention; false: an encoder-only model")
      .optional("parallel_residual", &Model::parallel_residual,
                "attention and MLP in parallel, on the same residual stream")
      .optional("shared_norm", &Model::shared_norm, "with parallel_residual: one norm for attention and MLP")
      .optional("embedding_norm", &Model::embedding_norm, "a norm after the embedding")
      .optional("final_norm", &Model::final_norm, "a norm before the head")
      .optional("position_rows", &Model::position_rows, "rows of a learned position table; 0 = max_seq", {.min = 0})
      .optional("sliding_window", &Model::sliding_window, "attention window, positions; 0 = none", {.min = 0})
      .optional("global_every", &Model::global_every,
                "every n-th layer has full attention instead of the window; 0 = none", {.min = 0})
      .optional("dropout", &Model::dropout, "hidden and attention dropout probability in pre-training")
      .optional("quantized_4_bit", &Model::quantized_4_bit,
                "layers that its checkpoints in 4 bits quantise; inference in 4 bits leaves the others in 16")
      .optional("norm", &Model::norm, "kind of norm")
      .optional("activation", &Model::activation, "activation function of the MLP")
      .optional("position", &Model::position, "position encoding");
}

// Without effect on time and memory; a launch states them.
void add_details(Record<Model>& record) {
  record.optional("norm_eps", &Model::norm_eps, "epsilon of norms; 0 = not described", {.min = 0.0, .max = 1.0})
      .optional("attention_soft_cap", &Model::attention_soft_cap, "attention scores are capped: cap tanh(score / cap)",
                {.min = 0.0})
      .optional("logit_soft_cap", &Model::logit_soft_cap, "logits are capped: cap tanh(logit / cap)", {.min = 0.0})
      .optional("attention_sinks", &Model::attention_sinks, "a learned logit per head in the softmax of attention")
      .optional("rope", &Model::rope, "rotary positions");
}

}  // namespace

const Record<Experts>& Described<Experts>::record() {
  static const auto record =
      Record<Experts>("experts", "A mixture of experts in place of the MLP.")
          .optional("count", &Experts::count, "routed experts of a layer; 0 = none", {.min = 0})
          .optional("active", &Experts::active, "routed experts per token (top-k)", {.min = 0})
          .optional("ffn", &Experts::ffn, "inner width of one routed expert", {.min = 0})
          .optional("shared_ffn", &Experts::shared_ffn, "inner width of all shared experts together; 0 = none",
                    {.min = 0})
          .optional("shared_gate", &Experts::shared_gate, "a learned gate scales the output of the shared experts")
          .optional("first_dense", &Experts::first_dense, "first layers that have a dense MLP", {.min = 0})
          .optional("every", &Experts::every, "of the other layers, every n-th has experts", {.min = 1})
          .optional("groups", &Experts::groups, "expert groups of equal size; 0 = no groups", {.min = 0})
          .optional("active_groups", &Experts::active_groups,
                    "groups that the experts of a token are chosen from (node-limited routing); 0 = all", {.min = 0})
          .optional("capacity_factor", &Experts::capacity_factor,
                    "tokens an expert accepts, as a multiple of its even share; 0 = dropless")
          .optional("score", &Experts::score, "how the router weighs experts")
          .optional("score_norm", &Experts::score_norm, "the weights of a token's experts are scaled to a sum of 1")
          .optional("score_scale", &Experts::score_scale, "factor on these weights")
          .optional("balance_bias", &Experts::balance_bias,
                    "a bias per expert for the choice only, set by a rule (DeepSeek-V3)");
  return record;
}

const Record<Mixer>& Described<Mixer>::record() {
  static const auto record =
      Record<Mixer>("mixer", "Layers that mix positions without attention, with a state of constant size.")
          .optional("kind", &Mixer::kind, "kind; attention = no such layers")
          .optional("heads", &Mixer::heads, "mamba2, gated_delta: value heads", {.min = 0})
          .optional("head_dim", &Mixer::head_dim, "width of a value head", {.min = 0})
          .optional("key_heads", &Mixer::key_heads, "gated_delta: heads of queries and keys", {.min = 0})
          .optional("key_dim", &Mixer::key_dim, "gated_delta: width of a query or key head", {.min = 0})
          .optional("inner", &Mixer::inner, "mamba: channels", {.min = 0})
          .optional("state", &Mixer::state, "mamba, mamba2: numbers of state per channel", {.min = 0})
          .optional("groups", &Mixer::groups, "mamba2: groups of heads that share B and C", {.min = 1})
          .optional("rank", &Mixer::rank, "mamba: rank of the projection of the step", {.min = 0})
          .optional("conv", &Mixer::conv, "positions of the convolution", {.min = 1})
          .optional("conv_bias", &Mixer::conv_bias, "the convolution has a bias")
          .optional("inner_norms", &Mixer::inner_norms, "mamba: norms of step, B and C (Jamba)")
          .optional("chunk", &Mixer::chunk, "positions of a chunk of the scan", {.min = 1})
          .optional("attention_every", &Mixer::attention_every, "of every n layers one has attention; 0 = none",
                    {.min = 0})
          .optional("attention_offset", &Mixer::attention_offset, "its index in them", {.min = 0});
  return record;
}

const Record<Rope>& Described<Rope>::record() {
  static const auto record =
      Record<Rope>("rope", "Rotary positions; without effect on time and memory.")
          .optional("base", &Rope::base, "base of the frequencies (theta); 0 = not described", {.min = 0.0})
          .optional("local_base", &Rope::local_base, "base in layers with a window; 0 = base", {.min = 0.0})
          .optional("fraction", &Rope::fraction, "part of a head that is rotated", {.min = 0.0, .max = 1.0})
          .optional("none_every", &Rope::none_every, "every n-th layer has no positions (NoPE); 0 = none", {.min = 0})
          .optional("scaling", &Rope::scaling, "change of frequencies for longer sequences")
          .optional("factor", &Rope::factor, "factor of the scaling", {.min = 0.0})
          .optional("original_seq", &Rope::original_seq, "positions before the scaling", {.min = 0})
          .optional("low_freq", &Rope::low_freq, "llama3: low_freq_factor", {.min = 0.0})
          .optional("high_freq", &Rope::high_freq, "llama3: high_freq_factor", {.min = 0.0})
          .optional("beta_fast", &Rope::beta_fast, "yarn: beta_fast", {.min = 0.0})
          .optional("beta_slow", &Rope::beta_slow, "yarn: beta_slow", {.min = 0.0})
          .optional("mscale", &Rope::mscale, "yarn: mscale", {.min = 0.0})
          .optional("mscale_all_dim", &Rope::mscale_all_dim, "yarn: mscale_all_dim", {.min = 0.0});
  return record;
}

const Record<LatentAttention>& Described<LatentAttention>::record() {
  static const auto record =
      Record<LatentAttention>("latent", "Multi-head latent attention (DeepSeek-V2).")
          .optional("query_rank", &LatentAttention::query_rank, "rank of the query projection; 0 = full rank",
                    {.min = 0})
          .optional("kv_rank", &LatentAttention::kv_rank, "rank of the key-value projection; 0 = no latent attention",
                    {.min = 0})
          .optional("nope_dim", &LatentAttention::nope_dim, "width of a query or key head without rotary position",
                    {.min = 0})
          .optional("rope_dim", &LatentAttention::rope_dim, "width with rotary position; all key heads share it",
                    {.min = 0})
          .optional("value_dim", &LatentAttention::value_dim, "width of a value head", {.min = 0});
  return record;
}

const Record<Vision>& Described<Vision>::record() {
  static const auto record =
      Record<Vision>("vision", "Image patches in place of text tokens.")
          .optional("image", &Vision::image, "side of the image, pixels; 0 = no vision model", {.min = 0})
          .optional("patch", &Vision::patch, "side of a patch, pixels", {.min = 0})
          .optional("channels", &Vision::channels, "channels of a pixel", {.min = 1})
          .optional("classes", &Vision::classes, "classes of the classifier; 0 = no classifier", {.min = 0});
  return record;
}

const Record<Tower>& Described<Tower>::record() {
  static const auto record =
      Record<Tower>("tower", "A vision transformer that turns images into tokens of the language model.")
          .optional("layers", &Tower::layers, "layers; 0 = no tower", {.min = 0})
          .optional("hidden", &Tower::hidden, "width of the residual stream", {.min = 0})
          .optional("heads", &Tower::heads, "heads", {.min = 0})
          .optional("ffn", &Tower::ffn, "inner width of the MLP", {.min = 0})
          .optional("gated_mlp", &Tower::gated_mlp, "the MLP is gated: two input projections, act(a) b")
          .optional("biases", &Tower::biases, "all projections of a layer have biases")
          .optional("norm", &Tower::norm, "kind of norm")
          .optional("activation", &Tower::activation, "activation function of the MLP")
          .optional("window", &Tower::window, "side of a window of attention, patches; 0 = none", {.min = 0})
          .optional("global_every", &Tower::global_every,
                    "every n-th layer attends to the whole image instead of a window; 0 = none", {.min = 0})
          .optional("image", &Tower::image, "side of every image, pixels; 0 = images have any size", {.min = 0})
          .optional("patch", &Tower::patch, "side of a patch, pixels", {.min = 0})
          .optional("channels", &Tower::channels, "channels of a pixel", {.min = 1})
          .optional("frames", &Tower::frames, "frames of a video in a patch", {.min = 1})
          .optional("patch_bias", &Tower::patch_bias, "the projection of patches has a bias")
          .optional("class_token", &Tower::class_token, "a class token in addition to the patches")
          .optional("learned_positions", &Tower::learned_positions, "a learned position table")
          .optional("end_norms", &Tower::end_norms, "1 = a norm after the last layer, 2 = and one before the first",
                    {.min = 0, .max = 2})
          .optional("merge", &Tower::merge, "side of the square of patches that becomes one token", {.min = 1})
          .optional("averages", &Tower::averages, "a square is averaged; otherwise it is concatenated")
          .optional("projector", &Tower::projector, "widths of the projector's layers, the language model's width last")
          .optional("projector_bias", &Tower::projector_bias, "the projector has biases")
          .optional("projector_norm", &Tower::projector_norm, "norm of the projector's input");
  return record;
}

const Record<Model>& Described<Model>::record() {
  static const auto record = [] {
    Record<Model> all("model", "A transformer (decoder, encoder and decoder, or vision encoder), or a recommender.");
    add_sizes(all);
    add_choices(all);
    add_details(all);
    all.optional("experts", &Model::experts, "mixture of experts")
        .optional("latent", &Model::latent, "multi-head latent attention")
        .optional("mixer", &Model::mixer, "layers without attention: state space, linear attention")
        .optional("pattern", &Model::pattern,
                  "a letter per layer of one half each: M mixer, * attention, - MLP, E experts; empty: both halves")
        .optional("vision", &Model::vision, "image patches")
        .optional("tower", &Model::tower, "vision tower of a language model")
        .optional("recommender", &Model::recommender,
                  "embedding tables and MLPs; transformer keys are not allowed with it")
        .optional("sources", &Model::sources, "field -> source of its value, or \"unverified: why\"")
        .check(inconsistency_of);
    return all;
  }();
  return record;
}

}  // namespace orrery::config
