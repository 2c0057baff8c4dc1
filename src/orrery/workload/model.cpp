#include "orrery/workload/model.hpp"

#include <utility>

namespace orrery::workload {
namespace {

// Weights and, for layernorm, biases of one norm.
std::int64_t norm_parameters(const Model& model, std::int64_t width) {
  return model.norm == Normalisation::layernorm ? 2 * width : width;
}

// Projections of queries, keys and values from `hidden` inputs, all heads, and the output projection.
std::int64_t attention_parameters(const Model& model) {
  const std::int64_t qkv_width = model.query_width() + 2 * model.kv_width();
  std::int64_t count = model.hidden * qkv_width + model.query_width() * model.hidden;
  if (model.qkv_bias) { count += qkv_width; }
  if (model.attention_output_bias) { count += model.hidden; }
  if (model.qk_norm) {
    count += 2 * norm_parameters(model, model.head_dim);
  }  // one for all query heads, one for all key heads
  return count;
}

// DeepSeek-V2, arXiv:2405.04434, section 2.1: h -> kv_rank + rope_dim, norm, kv_rank -> heads (nope_dim + value_dim);
// queries directly or over query_rank in the same way.
std::int64_t latent_parameters(const Model& model) {
  const auto& latent = model.latent;
  const std::int64_t query_width = model.heads * (latent.nope_dim + latent.rope_dim);
  const std::int64_t query = latent.query_rank == 0 ? model.hidden * query_width
                                                    : latent.query_rank * (model.hidden + query_width) +
                                                          norm_parameters(model, latent.query_rank);
  const std::int64_t kv = model.hidden * (latent.kv_rank + latent.rope_dim) + norm_parameters(model, latent.kv_rank) +
                          latent.kv_rank * model.heads * (latent.nope_dim + latent.value_dim);
  return query + kv + model.heads * latent.value_dim * model.hidden;
}

std::int64_t mlp_parameters(const Model& model, std::int64_t ffn) {
  const std::int64_t inward = model.gated_mlp ? 2 : 1;
  std::int64_t count = (inward + 1) * model.hidden * ffn;
  if (model.mlp_bias) { count += inward * ffn + model.hidden; }
  return count;
}

std::int64_t expert_parameters(const Model& model) { return mlp_parameters(model, model.experts.ffn); }

std::int64_t mixture_parameters(const Model& model) {
  const auto& experts = model.experts;
  std::int64_t count = model.hidden * experts.count + experts.count * expert_parameters(model);
  if (model.mlp_bias) { count += experts.count; }
  if (experts.shared_ffn > 0) { count += mlp_parameters(model, experts.shared_ffn); }
  if (experts.shared_gate) { count += model.hidden; }
  return count;
}

// Norms on the residual stream: before each half, after each half, before the attention to the encoder.
std::int64_t layer_norms(const Model& model, const LayerKind& kind) {
  std::int64_t norms = model.shared_norm ? 1 : 2;
  if (model.post_norms) { norms += 2; }
  if (kind.cross) { norms += 1; }
  return norms;
}

std::int64_t embedding_parameters(const Model& model) {
  std::int64_t count = model.vocab * model.hidden;
  if (model.is_vision()) {
    const std::int64_t patch_values = model.vision.patch * model.vision.patch * model.vision.channels;
    count += patch_values * model.hidden + model.hidden;  // patch projection: weights and bias
    count += model.hidden;                                // the class token
  }
  if (model.position == Position::learned) {
    count += (model.position_rows > 0 ? model.position_rows : model.max_seq) * model.hidden;
  }
  if (model.position == Position::relative) {
    const std::int64_t stacks = model.encoder_layers > 0 ? 2 : 1;
    count += stacks * kRelativeBuckets * model.heads;
  }
  if (model.embedding_norm) { count += norm_parameters(model, model.hidden); }
  return count;
}

std::int64_t head_parameters(const Model& model) {
  std::int64_t count = 0;
  if (model.final_norm) {
    const std::int64_t stacks = model.encoder_layers > 0 ? 2 : 1;
    count += stacks * norm_parameters(model, model.hidden);
  }
  if (model.is_vision()) { count += model.vision.classes * (model.hidden + 1); }
  if (!model.tied_embeddings) { count += model.vocab * model.hidden; }
  return count;
}

// Weights of the routed experts of one layer that a token does not use.
std::int64_t idle_parameters(const Model& model, const LayerKind& kind) {
  if (!kind.experts) { return 0; }
  return (model.experts.count - model.experts.active) * expert_parameters(model);
}

bool has_dense_layers(const Model& model) {
  return !model.has_experts() || model.experts.first_dense > 0 || model.experts.every != 1;
}

}  // namespace

namespace {

// The sizes that rules about transformers read of a recommender: one position, nothing to split. The experts are those
// of the top MLP.
Model as_one_position(Model model) {
  model.layers = static_cast<std::int64_t>(dense_layers(model.recommender).size());
  model.hidden = model.heads = model.kv_heads = model.head_dim = model.ffn = model.max_seq = 1;
  model.vocab = 0;
  model.position = Position::rotary;
  model.causal = false;
  model.final_norm = false;
  const TopExperts& experts = model.recommender.top_experts;
  if (experts.count > 0) {
    model.experts.count = experts.count;
    model.experts.active = experts.active;
    model.experts.ffn = 1;
  }
  return model;
}

}  // namespace

Model completed(Model model) {
  if (model.is_recommender()) { return as_one_position(std::move(model)); }
  const auto& latent = model.latent;
  if (model.kv_heads == 0) { model.kv_heads = model.heads; }
  if (model.head_dim == 0 && model.is_latent()) { model.head_dim = latent.nope_dim + latent.rope_dim; }
  if (model.head_dim == 0 && model.heads > 0) { model.head_dim = model.hidden / model.heads; }
  if (model.ffn == 0 && !has_dense_layers(model)) { model.ffn = model.experts.ffn; }
  if (model.max_seq == 0 && model.is_vision() && model.vision.patch > 0) { model.max_seq = model.vision.tokens(); }
  if (model.position_rows == 0 && model.position == Position::learned) { model.position_rows = model.max_seq; }
  return model;
}

LayerKind layer_kind(const Model& model, std::int64_t layer) {
  ORRERY_ASSERT(layer >= 0 && layer < model.depth());
  if (model.is_recommender()) { return dense_layers(model.recommender)[static_cast<std::size_t>(layer)]; }
  LayerKind kind;
  kind.encoder = layer < model.encoder_layers || !model.causal;
  kind.cross = model.encoder_layers > 0 && layer >= model.encoder_layers;
  const std::int64_t own =
      layer < model.encoder_layers ? layer : layer - model.encoder_layers;  // index in its own stack
  const auto& experts = model.experts;
  kind.experts =
      experts.count > 0 && own >= experts.first_dense && (own + 1 - experts.first_dense) % experts.every == 0;
  const bool looks_everywhere = model.global_every > 0 && (own + 1) % model.global_every == 0;
  kind.window = looks_everywhere ? 0 : model.sliding_window;
  return kind;
}

LayerKind mtp_kind(const Model& model) { return layer_kind(model, model.depth() - 1); }

std::int64_t layer_parameters(const Model& model, const LayerKind& kind) {
  if (kind.part != DensePart::none) { return dense_parameters(model.recommender, kind); }
  std::int64_t count = model.is_latent() ? latent_parameters(model) : attention_parameters(model);
  if (kind.cross) { count += attention_parameters(model); }
  count += kind.experts ? mixture_parameters(model) : mlp_parameters(model, model.ffn);
  return count + layer_norms(model, kind) * norm_parameters(model, model.hidden);
}

std::int64_t mtp_parameters(const Model& model) {
  return 3 * norm_parameters(model, model.hidden) + 2 * model.hidden * model.hidden +
         layer_parameters(model, mtp_kind(model));
}

ParameterCount parameter_count(const Model& model) {
  if (model.is_recommender()) { return parameter_count(model.recommender); }
  ParameterCount count;
  std::int64_t idle = 0;
  count.embedding = embedding_parameters(model);
  for (std::int64_t layer = 0; layer < model.depth(); ++layer) {
    const LayerKind kind = layer_kind(model, layer);
    count.layers += layer_parameters(model, kind);
    idle += idle_parameters(model, kind);
  }
  if (model.mtp_layers > 0) {
    count.mtp = model.mtp_layers * mtp_parameters(model);
    idle += model.mtp_layers * idle_parameters(model, mtp_kind(model));
  }
  count.layers += count.mtp;
  count.head = head_parameters(model);
  count.total = count.embedding + count.layers + count.head;
  count.active = count.total - idle;
  return count;
}

double kv_bytes_per_token(const Model& model, double element) {
  if (!model.causal) { return 0.0; }
  const std::int64_t width = model.is_latent() ? model.latent.kv_rank + model.latent.rope_dim : 2 * model.kv_width();
  return static_cast<double>(width * model.layers) * element;
}

}  // namespace orrery::workload
