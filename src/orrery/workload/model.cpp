#include "orrery/workload/model.hpp"

#include <utility>

#include "orrery/core/integers.hpp"

namespace orrery::workload {
namespace {

// Weights and, for layernorm, biases of one norm.
std::int64_t norm_parameters(const Model& model, std::int64_t width) {
  return model.norm == Normalisation::layernorm ? 2 * width : width;
}

// Projections of queries, keys and values from `hidden` inputs, all heads, and the output projection.
std::int64_t attention_parameters(const Model& model) {
  const std::int64_t qkv_width = (model.attention_gate ? 2 : 1) * model.query_width() + 2 * model.kv_width();
  std::int64_t count = model.hidden * qkv_width + model.query_width() * model.hidden;
  if (model.qkv_bias) { count += qkv_width; }
  if (model.attention_output_bias) { count += model.hidden; }
  if (model.qk_norm && model.qk_norm_wide) {
    count += norm_parameters(model, model.query_width() + model.kv_width());
  } else if (model.qk_norm) {
    count += 2 * norm_parameters(model, model.head_dim);  // one for all query heads, one for all key heads
  }
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

// Projections in and out, convolution, scan, norm. Mamba's scan: projections of the step, B and C, and of the step to
// the channels with a bias; decay per channel and state; skip per channel. Mamba-2: decay, skip and bias of the step
// per head. Gated delta rule: decay and bias of the step per head; its norm is one head wide.
std::int64_t mixer_parameters(const Model& model) {
  const Mixer& m = model.mixer;
  std::int64_t count = model.hidden * (m.in_width() + m.width());
  count += m.conv_width() * (m.conv + (m.conv_bias ? 1 : 0));
  switch (m.kind) {
    case MixerKind::mamba: {
      const std::int64_t narrow = m.rank + 2 * m.state;
      count += m.inner * (narrow + m.rank + 1) + m.inner * (m.state + 1);
      return count + (m.inner_norms ? norm_parameters(model, narrow) : 0);
    }
    case MixerKind::mamba2: return count + 3 * m.heads + m.width();
    case MixerKind::gated_delta: return count + 2 * m.heads + m.head_dim;
    case MixerKind::attention:
    case MixerKind::none: break;
  }
  throw_internal_error("a mixer with weights", __FILE__, __LINE__);
}

std::int64_t first_half_parameters(const Model& model, const LayerKind& kind) {
  if (kind.mixer == MixerKind::none) { return 0; }
  if (kind.mixer != MixerKind::attention) { return mixer_parameters(model); }
  return model.is_latent() ? latent_parameters(model) : attention_parameters(model);
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
  const std::int64_t halves = (kind.mixer == MixerKind::none ? 0 : 1) + (kind.mlp ? 1 : 0);
  std::int64_t norms = !model.pre_norms ? 0 : model.shared_norm ? 1 : halves;
  if (model.post_norms) { norms += halves; }
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

}  // namespace

bool Model::has_attention() const {
  if (!pattern.empty()) { return pattern.find('*') != std::string::npos; }
  return !has_mixers() || (mixer.attention_every > 0 && mixer.attention_offset < layers);
}

bool Model::has_dense_layers() const {
  if (!pattern.empty()) { return pattern.find('-') != std::string::npos; }
  return !has_experts() || experts.first_dense > 0 || experts.every != 1;
}

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

Heads padded_heads(const Model& model, std::int64_t tp) {
  const std::int64_t query = ceil_div(model.heads, tp) * tp;
  if (model.kv_heads == model.heads) { return {query, query}; }
  if (model.kv_heads % tp == 0) { return {query, model.kv_heads}; }
  return {query, tp % model.kv_heads == 0 ? tp : query};
}

Model padded(Model model, std::int64_t tp) {
  const Heads heads = padded_heads(model, tp);
  model.heads = heads.query;
  model.kv_heads = heads.kv;
  return model;
}

Model completed(Model model) {
  if (model.is_recommender()) { return as_one_position(std::move(model)); }
  const auto& latent = model.latent;
  if (model.kv_heads == 0) { model.kv_heads = model.heads; }
  if (model.head_dim == 0 && model.is_latent()) { model.head_dim = latent.nope_dim + latent.rope_dim; }
  if (model.head_dim == 0 && model.heads > 0) { model.head_dim = model.hidden / model.heads; }
  if (model.ffn == 0 && !model.has_dense_layers()) {
    model.ffn = model.has_experts() ? model.experts.ffn : model.hidden;  // without an MLP any width will do
  }
  if (model.max_seq == 0 && model.is_vision() && model.vision.patch > 0) { model.max_seq = model.vision.tokens(); }
  if (model.position_rows == 0 && model.position == Position::learned) { model.position_rows = model.max_seq; }
  return model;
}

namespace {

// Layers of one half. Letters are checked by `inconsistency`.
LayerKind half_layer(const Model& model, std::int64_t layer) {
  LayerKind kind;
  const char letter = model.pattern[static_cast<std::size_t>(layer)];
  const bool mixes = letter == 'M' || letter == '*';
  kind.mixer = letter == 'M' ? model.mixer.kind : mixes ? MixerKind::attention : MixerKind::none;
  kind.mlp = !mixes;
  kind.experts = letter == 'E';
  kind.window = letter == '*' ? model.sliding_window : 0;
  return kind;
}

}  // namespace

LayerKind layer_kind(const Model& model, std::int64_t layer) {
  ORRERY_ASSERT(layer >= 0 && layer < model.depth());
  if (model.is_recommender()) { return dense_layers(model.recommender)[static_cast<std::size_t>(layer)]; }
  if (!model.pattern.empty()) { return half_layer(model, layer); }
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
  const Mixer& mixer = model.mixer;
  const bool attends = mixer.attention_every > 0 && own % mixer.attention_every == mixer.attention_offset;
  if (model.has_mixers() && !attends) {
    kind.mixer = mixer.kind;
    kind.window = 0;
  }
  return kind;
}

LayerKind mtp_kind(const Model& model) { return layer_kind(model, model.depth() - 1); }

std::int64_t layer_parameters(const Model& model, const LayerKind& kind) {
  if (kind.part != DensePart::none) { return dense_parameters(model.recommender, kind); }
  std::int64_t count = first_half_parameters(model, kind);
  if (kind.cross) { count += attention_parameters(model); }
  if (kind.mlp) { count += kind.experts ? mixture_parameters(model) : mlp_parameters(model, model.ffn); }
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
  if (model.has_tower()) { count.tower = parameters(model.tower); }
  count.total = count.embedding + count.layers + count.head + count.tower;
  count.active = count.total - count.tower - idle;
  return count;
}

double kv_bytes_per_token(const Model& model, double element) {
  if (!model.causal) { return 0.0; }
  const std::int64_t width = model.is_latent() ? model.latent.kv_rank + model.latent.rope_dim : 2 * model.kv_width();
  std::int64_t attending = model.layers;
  if (model.has_mixers() || !model.pattern.empty()) {
    attending = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      if (layer_kind(model, model.encoder_layers + layer).mixer == MixerKind::attention) { ++attending; }
    }
  }
  return static_cast<double>(width * attending) * element;
}

}  // namespace orrery::workload
