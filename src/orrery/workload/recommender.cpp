#include "orrery/workload/recommender.hpp"

#include <utility>

#include "orrery/core/integers.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload {

namespace {

// Vectors of a sample as a transformer's tokens.
std::int64_t tokens_of(const Recommender& r) { return r.interaction.tokens > 0 ? r.interaction.tokens : r.vectors(); }
std::int64_t token_width(const Recommender& r) {
  return r.interaction.width > 0 ? r.interaction.width : r.tables.front().width;
}

LayerKind dense_kind(DensePart part, std::int64_t in, std::int64_t out) {
  LayerKind kind;
  kind.part = part;
  kind.in = in;
  kind.out = out;
  return kind;
}

void append_interaction(std::vector<LayerKind>& layers, const Recommender& r) {
  const Interaction& how = r.interaction;
  const std::int64_t joined = r.joined_width();
  const auto append = [&](DensePart part, std::int64_t in, std::int64_t out, std::int64_t times = 1) {
    for (std::int64_t i = 0; i < times; ++i) { layers.push_back(dense_kind(part, in, out)); }
  };
  switch (how.kind) {
    case InteractionKind::dot:
      append(DensePart::dot, joined, r.vectors() * (r.vectors() - 1) / 2 + r.bottom_width());
      return;
    case InteractionKind::concat: append(DensePart::join, joined, joined); return;
    case InteractionKind::cross:
      append(DensePart::join, joined, joined);
      append(DensePart::cross, joined, joined, how.layers);
      return;
    case InteractionKind::transformer: {
      const std::int64_t width = tokens_of(r) * token_width(r);
      append(DensePart::join, joined, width);
      append(DensePart::transformer, width, width, how.layers);
      if (how.output > 0) { append(DensePart::join, width, how.output); }
      return;
    }
    case InteractionKind::opaque: append(DensePart::join, joined, how.width); return;
  }
}

// Weights and biases of a layer of an MLP.
std::int64_t connected(std::int64_t in, std::int64_t out) { return in * out + out; }

}  // namespace

std::int64_t Recommender::table_count() const {
  std::int64_t sum = 0;
  for (const Table& table : tables) { sum += table.count; }
  return sum;
}

double Recommender::table_elements() const {
  double sum = 0;
  for (const Table& table : tables) { sum += real(table.count) * real(table.rows) * real(table.width); }
  return sum;
}

std::int64_t Recommender::vectors_width() const {
  std::int64_t sum = 0;
  for (const Table& table : tables) { sum += table.count * table.width; }
  return sum;
}

double Recommender::lookups() const {
  double sum = 0;
  for (const Table& table : tables) { sum += real(table.count) * table.lookups; }
  return sum;
}

double Recommender::looked_up_elements() const {
  double sum = 0;
  for (const Table& table : tables) { sum += real(table.count) * real(table.width) * table.lookups; }
  return sum;
}

std::vector<LayerKind> dense_layers(const Recommender& recommender) {
  std::vector<LayerKind> layers;
  append_interaction(layers, recommender);
  std::int64_t in = layers.back().out;
  for (std::size_t i = 0; i < recommender.top.size(); ++i) {
    LayerKind kind = dense_kind(DensePart::top, in, recommender.top[i]);
    kind.experts = recommender.top_experts.count > 0;
    kind.opens = kind.experts && i == 0;
    kind.closes = i + 1 == recommender.top.size();
    layers.push_back(kind);
    in = recommender.top[i];
  }
  return layers;
}

Model transformer_of(const Recommender& recommender) {
  Model model;
  model.layers = recommender.interaction.layers;
  model.hidden = token_width(recommender);
  model.heads = recommender.interaction.heads;
  model.ffn = recommender.interaction.ffn;
  model.max_seq = tokens_of(recommender);
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.causal = false;
  model.activation = Activation::relu;
  return completed(std::move(model));
}

std::int64_t bottom_parameters(const Recommender& recommender) {
  std::int64_t sum = 0, in = recommender.dense_features;
  for (const std::int64_t out : recommender.bottom) {
    sum += connected(in, out);
    in = out;
  }
  return sum;
}

std::int64_t dense_parameters(const Recommender& recommender, const LayerKind& kind) {
  switch (kind.part) {
    case DensePart::none:
    case DensePart::dot:
    case DensePart::join: return 0;
    case DensePart::cross: {
      const std::int64_t rank = recommender.interaction.rank;
      return (rank > 0 ? 2 * rank : kind.in) * kind.in + kind.in;
    }
    case DensePart::transformer: {
      const Model model = transformer_of(recommender);
      return layer_parameters(model, layer_kind(model, 0));
    }
    case DensePart::top: {
      if (!kind.experts) { return connected(kind.in, kind.out); }
      const std::int64_t experts = recommender.top_experts.count;
      return experts * connected(kind.in, kind.out) + (kind.opens ? connected(kind.in, experts) : 0);
    }
  }
  return 0;
}

ParameterCount parameter_count(const Recommender& recommender) {
  ParameterCount count;
  double looked_up = 0;
  for (const Table& table : recommender.tables) {
    count.embedding += table.count * table.rows * table.width;
    looked_up += real(table.count) * std::min(table.lookups, real(table.rows)) * real(table.width);
  }
  count.layers = bottom_parameters(recommender);
  std::int64_t idle = 0;
  const TopExperts& experts = recommender.top_experts;
  for (const LayerKind& kind : dense_layers(recommender)) {
    count.layers += dense_parameters(recommender, kind);
    if (kind.experts) { idle += (experts.count - experts.active) * connected(kind.in, kind.out); }
  }
  count.total = count.embedding + count.layers;
  count.active = static_cast<std::int64_t>(looked_up) + count.layers - idle;
  return count;
}

Multiplications multiplications(const Recommender& recommender) {
  Multiplications sum;
  double in = real(recommender.dense_features);
  for (const std::int64_t out : recommender.bottom) {
    if (sum.all == 0) { sum.first = in * real(out); }
    sum.all += in * real(out);
    in = real(out);
  }
  const TopExperts& experts = recommender.top_experts;
  const double rank = real(recommender.interaction.rank);
  for (const LayerKind& kind : dense_layers(recommender)) {
    const double square = real(kind.in) * real(kind.in), vectors = real(recommender.vectors());
    if (kind.part == DensePart::dot) { sum.all += vectors * real(kind.in); }  // [F, w] x [w, F]
    if (kind.part == DensePart::cross) { sum.all += rank > 0 ? 2.0 * real(kind.in) * rank : square; }
    if (kind.part != DensePart::top) { continue; }
    sum.all += real(kind.in) * real(kind.out) * (kind.experts ? real(experts.active) : 1.0);
    if (kind.opens) { sum.all += real(kind.in) * real(experts.count); }
  }
  return sum;
}

}  // namespace orrery::workload
