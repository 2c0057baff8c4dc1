#include "orrery/workload/records.hpp"

namespace orrery::config {

using workload::Experts;
using workload::LatentAttention;
using workload::Model;
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
  record.optional("name", &Model::name, "name, the file's when absent")
      .optional("description", &Model::description, "what it is")
      .required("layers", &Model::layers, "transformer layers, of the decoder when there is an encoder", {.min = 1})
      .optional("encoder_layers", &Model::encoder_layers, "layers of an encoder in front (T5)", {.min = 0})
      .optional("mtp_layers", &Model::mtp_layers, "modules that predict further tokens (DeepSeek-V3)", {.min = 0})
      .required("hidden", &Model::hidden, "width of the residual stream", {.min = 1})
      .required("heads", &Model::heads, "query heads", {.min = 1})
      .optional("kv_heads", &Model::kv_heads, "key and value heads; 0 = heads", {.min = 0})
      .optional("head_dim", &Model::head_dim, "width of a head; 0 = hidden / heads", {.min = 0})
      .optional("ffn", &Model::ffn, "width of the MLP's inner layer; may be left out when every layer has experts",
                {.min = 0})
      .optional("vocab", &Model::vocab, "rows of the embedding as stored; left out by vision models only", {.min = 0})
      .optional("max_seq", &Model::max_seq, "longest sequence; a vision model's is its number of patches and 1",
                {.min = 0});
}

void add_choices(Record<Model>& record) {
  record.optional("gated_mlp", &Model::gated_mlp, "two input projections, act(a) b")
      .optional("tied_embeddings", &Model::tied_embeddings, "the head shares the embedding's weights")
      .optional("qkv_bias", &Model::qkv_bias, "query, key and value projections have biases")
      .optional("attention_output_bias", &Model::attention_output_bias, "attention's output projection has a bias")
      .optional("mlp_bias", &Model::mlp_bias, "MLP projections have biases; experts and their router, too")
      .optional("qk_norm", &Model::qk_norm, "queries and keys are normalised head by head")
      .optional("post_norms", &Model::post_norms, "a norm behind attention and behind the MLP, too")
      .optional("causal", &Model::causal, "a position sees those before it only; false: an encoder alone")
      .optional("parallel_residual", &Model::parallel_residual, "attention and MLP read the same residual stream")
      .optional("shared_norm", &Model::shared_norm, "and one norm serves both")
      .optional("embedding_norm", &Model::embedding_norm, "a norm after the embedding")
      .optional("final_norm", &Model::final_norm, "a norm before the head")
      .optional("position_rows", &Model::position_rows, "rows of a learned position table; 0 = max_seq", {.min = 0})
      .optional("sliding_window", &Model::sliding_window, "positions that a query looks back; 0 = all", {.min = 0})
      .optional("global_every", &Model::global_every, "every n-th layer looks back over all the same; 0 = none",
                {.min = 0})
      .optional("dropout", &Model::dropout, "hidden and attention dropout probability in pre-training")
      .optional("norm", &Model::norm, "kind of norm")
      .optional("activation", &Model::activation, "of the MLP")
      .optional("position", &Model::position, "how positions enter");
}

}  // namespace

const Record<Experts>& Described<Experts>::record() {
  static const auto record =
      Record<Experts>("experts", "A mixture of experts in place of the MLP.")
          .optional("count", &Experts::count, "routed experts of a layer; 0 = none", {.min = 0})
          .optional("active", &Experts::active, "experts that a token is sent to", {.min = 0})
          .optional("ffn", &Experts::ffn, "inner width of one routed expert", {.min = 0})
          .optional("shared_ffn", &Experts::shared_ffn, "inner width of the experts that every token passes, together",
                    {.min = 0})
          .optional("shared_gate", &Experts::shared_gate, "the shared experts' output is scaled by a learned gate")
          .optional("first_dense", &Experts::first_dense, "leading layers that have a dense MLP", {.min = 0})
          .optional("every", &Experts::every, "of the other layers, every n-th has experts", {.min = 1})
          .optional("groups", &Experts::groups, "experts form so many groups of equal size; 0 = they do not",
                    {.min = 0})
          .optional("active_groups", &Experts::active_groups,
                    "groups that a token's experts come from (node-limited routing); 0 = all", {.min = 0})
          .optional("capacity_factor", &Experts::capacity_factor,
                    "an expert takes this many times its even share of tokens; 0 = all that come");
  return record;
}

const Record<LatentAttention>& Described<LatentAttention>::record() {
  static const auto record =
      Record<LatentAttention>("latent", "Multi-head latent attention (DeepSeek-V2).")
          .optional("query_rank", &LatentAttention::query_rank, "width that queries are squeezed to; 0 = they are not",
                    {.min = 0})
          .optional("kv_rank", &LatentAttention::kv_rank,
                    "width that keys and values are squeezed to; 0 = no latent "
                    "attention",
                    {.min = 0})
          .optional("nope_dim", &LatentAttention::nope_dim, "part of a query or key head without position", {.min = 0})
          .optional("rope_dim", &LatentAttention::rope_dim, "part with rotary position; keys share it", {.min = 0})
          .optional("value_dim", &LatentAttention::value_dim, "width of a value head", {.min = 0});
  return record;
}

const Record<Vision>& Described<Vision>::record() {
  static const auto record =
      Record<Vision>("vision", "Patches of an image in place of words.")
          .optional("image", &Vision::image, "side of the image, pixels; 0 = no vision model", {.min = 0})
          .optional("patch", &Vision::patch, "side of a patch, pixels", {.min = 0})
          .optional("channels", &Vision::channels, "colours of a pixel", {.min = 1})
          .optional("classes", &Vision::classes, "rows of the classifier; 0 = none", {.min = 0});
  return record;
}

const Record<Model>& Described<Model>::record() {
  static const auto record = [] {
    Record<Model> all("model", "A transformer (decoder, encoder and decoder, or vision encoder), or a recommender.");
    add_sizes(all);
    add_choices(all);
    all.optional("experts", &Model::experts, "mixture of experts")
        .optional("latent", &Model::latent, "multi-head latent attention")
        .optional("vision", &Model::vision, "image patches")
        .optional("recommender", &Model::recommender, "embedding tables and MLPs; then nothing of a transformer")
        .optional("sources", &Model::sources,
                  "figure -> where it was read; \"unverified: why\" when nobody has seen a source")
        .check(inconsistency_of);
    return all;
  }();
  return record;
}

}  // namespace orrery::config
