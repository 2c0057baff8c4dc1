#include "orrery/workload/recommender.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::workload {

namespace {

RecommenderFault fault_of_tower(const Tower& tower, const std::string& pointer) {
  const bool lists = !tower.widths.empty();
  const bool repeats = tower.layers > 0 || tower.width > 0;
  if (lists && repeats) { return {pointer, "says widths, and layers of one width: one of the two"}; }
  if (!lists && (tower.layers < 1 || tower.width < 1)) {
    return {pointer, "needs layers and their width, or a list of widths"};
  }
  if (tower.active_experts > tower.experts || (tower.has_experts() && tower.active_experts < 1)) {
    return {pointer, fmt::format("{} active experts of {}", tower.active_experts, tower.experts)};
  }
  return {};
}

// Multiplications of a tower's weights that a sample takes part in.
double active_weights(const Tower& tower) {
  double products = 0.0;
  for (const auto& layer : tower.each()) {
    products += static_cast<double>(layer.input) * static_cast<double>(layer.output);
  }
  return products * (tower.has_experts() ? static_cast<double>(tower.active_experts) : 1.0);
}

double weights(const Tower& tower) {
  Tower one = tower;
  one.experts = one.active_experts = 0;
  return active_weights(one) * static_cast<double>(std::max<std::int64_t>(tower.experts, 1));
}

double weights(const TransformerInteraction& interaction) {
  const auto width = static_cast<double>(interaction.hidden);
  return static_cast<double>(interaction.layers) *
         (4.0 * width * width + 2.0 * width * static_cast<double>(interaction.ffn));
}

}  // namespace

std::vector<Tower::Layer> Tower::each() const {
  std::vector<Layer> all;
  const auto add = [&](std::int64_t output) {
    const std::int64_t before = all.empty() ? (input > 0 ? input : output) : all.back().output;
    all.push_back({before, output});
  };
  for (const auto output : widths) { add(output); }
  for (std::int64_t i = 0; i < layers; ++i) { add(width); }
  return all;
}

RecommenderFault fault_of(const Recommender& recommender) {
  if (auto fault = fault_of_tower(recommender.bottom, "/bottom"); !fault.message.empty()) { return fault; }
  if (auto fault = fault_of_tower(recommender.top, "/top"); !fault.message.empty()) { return fault; }
  if (recommender.bottom.has_experts()) { return {"/bottom/experts", "experts are of the top MLP only"}; }
  return {};
}

RecommenderSize size_of(const Recommender& recommender) {
  RecommenderSize size;
  for (const auto& table : recommender.tables) {
    const auto row = static_cast<double>(table.count) * static_cast<double>(table.width);
    size.table_parameters += row * static_cast<double>(table.rows);
    size.looked_up_elements += row * table.pooling;
  }
  size.dense_parameters = weights(recommender.bottom) + weights(recommender.top);
  size.flops = 2.0 * (active_weights(recommender.bottom) + active_weights(recommender.top));
  if (recommender.interaction) {
    size.dense_parameters += weights(*recommender.interaction);
    size.flops += 2.0 * weights(*recommender.interaction) * static_cast<double>(recommender.interaction->seq);
  }
  return size;
}

}  // namespace orrery::workload
