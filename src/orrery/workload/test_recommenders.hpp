// Recommenders for tests.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/workload/model.hpp"

namespace orrery::workload::test {

inline Model completed_recommender(Recommender recommender) {
  Model model;
  model.name = "recommender";
  model.recommender = std::move(recommender);
  return completed(std::move(model));
}

// Four tables of 1000 rows and width 8, three lookups in each; MLPs 4 - 16 - 8 and 4 vectors and one -> 10 pairs.
inline Recommender small_recommender() {
  Recommender r;
  r.dense_features = 4;
  r.bottom = {16, 8};
  r.tables = {{4, 1000, 8, 3.0}};
  r.interaction.kind = InteractionKind::dot;
  r.top = {32, 1};
  return r;
}

// `random(low, high)`: any number from low to below high.
template <class SeededRandom>
Recommender any_recommender(SeededRandom&& random) {
  Recommender r;
  const std::int64_t width = 8 * random(1, 5);
  r.dense_features = random(1, 20);
  for (std::int64_t i = random(0, 3); i > 0; --i) { r.bottom.push_back(8 * random(1, 20)); }
  r.bottom.push_back(width);
  const std::int64_t kinds = random(1, 5);
  for (std::int64_t i = 0; i < kinds; ++i) {
    r.tables.push_back({random(1, 9), random(1, 200'000), width, static_cast<double>(random(1, 40))});
  }
  r.table_precision = random(0, 2) == 0 ? hardware::Precision::fp16 : hardware::Precision::fp32;
  r.interaction.kind = static_cast<InteractionKind>(random(0, 5));
  r.interaction.layers = random(1, 4);
  r.interaction.rank = 8 * random(0, 4);
  r.interaction.heads = random(1, 3);
  if (width % r.interaction.heads != 0) { r.interaction.heads = 1; }
  r.interaction.ffn = 16 * random(1, 5);
  r.interaction.width = r.interaction.kind == InteractionKind::opaque ? random(1, 100) : 0;
  r.interaction.output = random(0, 2) == 0 ? random(1, 100) : 0;
  for (std::int64_t i = random(0, 4); i > 0; --i) { r.top.push_back(8 * random(1, 20)); }
  r.top.push_back(random(1, 4));
  if (random(0, 3) == 0) {
    r.top_experts.count = 4;
    r.top_experts.active = random(1, 5);
  }
  return r;
}

}  // namespace orrery::workload::test
