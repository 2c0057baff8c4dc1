// Fields that the documents of physical and of MAD-Max estimates have in common. Private to the room.
#pragma once

#include <cstdint>

#include "orrery/config/json.hpp"

namespace orrery::report {

template <class Estimate>
void add_feasibility(config::Node& json, const Estimate& estimate) {
  using config::JsonValue;
  add_fields(json, {{"feasible", estimate.feasible},
                    {"infeasible_reason",
                     estimate.feasible ? JsonValue(nullptr) : config::text_or_null(estimate.infeasible_reason)}});
}

template <class Estimate>
void add_rates(config::Node& json, const Estimate& estimate) {
  add_fields(json, {{"samples_per_s", estimate.samples_per_s},
                    {"tokens_per_s", estimate.tokens_per_s},
                    {"model_flops_per_step", estimate.model_flops},
                    {"mfu", estimate.mfu}});
}

// A search's run time and its points per second.
inline void add_search_speed(config::Node& json, std::int64_t points, double wall_s) {
  using config::JsonValue;
  add_fields(json,
             {{"wall_s", wall_s},
              {"points_per_s", wall_s > 0 ? JsonValue(static_cast<double>(points) / wall_s) : JsonValue(nullptr)}});
}

// A list of estimates with their ranks; `add` appends the fields of one.
template <class Estimates, class Add>
[[nodiscard]] config::Node ranked_json(const Estimates& estimates, Add add) {
  config::Node list = config::sequence_node();
  for (const auto& estimate : estimates) {
    config::Node one = config::json_object({{"rank", list.items.size() + 1}});
    add(one, estimate);
    append(list, std::move(one));
  }
  return list;
}

}  // namespace orrery::report
