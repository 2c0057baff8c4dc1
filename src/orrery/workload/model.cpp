#include "orrery/workload/model.hpp"

#include <array>

#include <fmt/format.h>

#include "orrery/core/error.hpp"

namespace orrery::workload {
namespace {

// Weights and, for layernorm, biases of one norm.
std::int64_t norm_parameters(const Model& model) {
  return model.norm == Normalisation::layernorm ? 2 * model.hidden : model.hidden;
}

std::int64_t attention_parameters(const Model& model) {
  const std::int64_t qkv_width = model.query_width() + 2 * model.kv_width();
  std::int64_t count = model.hidden * qkv_width + model.query_width() * model.hidden;
  if (model.qkv_bias) { count += qkv_width; }
  if (model.attention_output_bias) { count += model.hidden; }
  return count;
}

std::int64_t mlp_parameters(const Model& model) {
  const std::int64_t inward = model.gated_mlp ? 2 : 1;
  std::int64_t count = (inward + 1) * model.hidden * model.ffn;
  if (model.mlp_bias) { count += inward * model.ffn + model.hidden; }
  return count;
}

struct Limit {
  std::string_view name;
  std::int64_t Model::* member;
  std::int64_t most;
};

// Far above what anybody trains, and low enough that parameter counts stay below 2^63.
constexpr std::array kLimits = {
    Limit{"layers", &Model::layers, 10'000},    Limit{"hidden", &Model::hidden, 1'000'000},
    Limit{"heads", &Model::heads, 16'384},      Limit{"kv_heads", &Model::kv_heads, 16'384},
    Limit{"head_dim", &Model::head_dim, 4'096}, Limit{"ffn", &Model::ffn, 10'000'000},
    Limit{"vocab", &Model::vocab, 100'000'000}, Limit{"max_seq", &Model::max_seq, 1'000'000'000},
};

// Of numbers that may be 0.
constexpr std::array kLimitsOrZero = {
    Limit{"position_rows", &Model::position_rows, 1'000'000'000},
    Limit{"sliding_window", &Model::sliding_window, 1'000'000'000},
};

std::optional<Inconsistency> out_of_bounds(const Model& model) {
  for (const auto& limit : kLimits) {
    const std::int64_t value = model.*limit.member;
    if (value < 1) {
      return Inconsistency{limit.name, fmt::format("{} is {}; it must be at least 1", limit.name, value)};
    }
    if (value > limit.most) {
      return Inconsistency{limit.name, fmt::format("{} is {}; at most {} is accepted", limit.name, value, limit.most)};
    }
  }
  for (const auto& limit : kLimitsOrZero) {
    const std::int64_t value = model.*limit.member;
    if (value < 0 || value > limit.most) {
      return Inconsistency{limit.name, fmt::format("{} is {}; 0 to {} is accepted", limit.name, value, limit.most)};
    }
  }
  return std::nullopt;
}

}  // namespace

Model completed(Model model) {
  if (model.kv_heads == 0) { model.kv_heads = model.heads; }
  if (model.head_dim == 0 && model.heads > 0) { model.head_dim = model.hidden / model.heads; }
  if (model.position_rows == 0 && model.position == Position::learned) { model.position_rows = model.max_seq; }
  return model;
}

std::optional<Inconsistency> inconsistency(const Model& model) {
  if (model.heads < 1) {
    return Inconsistency{"heads", fmt::format("heads is {}; it must be at least 1", model.heads)};
  }
  if (model.head_dim == 0 && model.hidden % model.heads != 0) {
    return Inconsistency{"hidden", fmt::format("hidden {} does not divide by heads {}, and head_dim is not given",
                                               model.hidden, model.heads)};
  }
  const Model whole = completed(model);
  if (auto wrong = out_of_bounds(whole)) { return wrong; }
  if (whole.heads % whole.kv_heads != 0) {
    return Inconsistency{"kv_heads",
                         fmt::format("heads {} does not divide by kv_heads {}", whole.heads, whole.kv_heads)};
  }
  if (!(whole.dropout >= 0.0 && whole.dropout < 1.0)) {
    return Inconsistency{"dropout", fmt::format("dropout is {}; it must be at least 0 and below 1", whole.dropout)};
  }
  return std::nullopt;
}

LayerKind layer_kind(const Model& model, std::int64_t layer) {
  ORRERY_ASSERT(layer >= 0 && layer < model.depth());
  LayerKind kind;
  kind.encoder = layer < model.encoder_layers || !model.causal;
  kind.cross = model.encoder_layers > 0 && layer >= model.encoder_layers;
  const std::int64_t own = layer < model.encoder_layers ? layer : layer - model.encoder_layers;  // in its stack
  const auto& experts = model.experts;
  kind.experts = experts.count > 0 && own >= experts.first_dense && (own + 1 - experts.first_dense) % experts.every == 0;
  const bool looks_everywhere = model.global_every > 0 && (own + 1) % model.global_every == 0;
  kind.window = looks_everywhere ? 0 : model.sliding_window;
  return kind;
}

std::int64_t layer_parameters(const Model& model, const LayerKind& /*kind*/) {
  return attention_parameters(model) + mlp_parameters(model) + 2 * norm_parameters(model);
}

ParameterCount parameter_count(const Model& model) {
  ParameterCount count;
  const std::int64_t position_rows = model.position_rows > 0 ? model.position_rows : model.max_seq;
  count.embedding = model.vocab * model.hidden;
  if (model.position == Position::learned) { count.embedding += position_rows * model.hidden; }
  if (model.embedding_norm) { count.embedding += norm_parameters(model); }
  for (std::int64_t layer = 0; layer < model.depth(); ++layer) {
    count.layers += layer_parameters(model, layer_kind(model, layer));
  }
  if (model.final_norm) { count.head += norm_parameters(model); }
  if (!model.tied_embeddings) { count.head += model.vocab * model.hidden; }
  count.total = count.embedding + count.layers + count.head;
  count.active = count.total;
  return count;
}

double kv_bytes_per_token(const Model& model, double element) {
  return static_cast<double>(2 * model.kv_width() * model.layers) * element;
}

}  // namespace orrery::workload
