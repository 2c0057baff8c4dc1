// Searches over deployments as text and JSON.
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/serving_plan.hpp"

namespace orrery::report {

[[nodiscard]] std::string serving_plan_text(const results::ServingPlan& plan, bool explain, TextStyle style);

// orrery.plan/1 with "task": "serve": the fields of orrery.serve/1 for each of "best", and the front.
[[nodiscard]] std::string serving_plan_json(const results::ServingPlan& plan);

}  // namespace orrery::report
