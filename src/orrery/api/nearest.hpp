// Where nothing fits: the plan that needs the least memory, and the smallest changes after which a plan fits.
#pragma once

#include <optional>
#include <string>

#include "orrery/api/planning.hpp"
#include "orrery/results/plan.hpp"

namespace orrery::api {

// Of the request's space, which has no plan that fits. Each change is made alone and verified: more devices (doubled,
// up to 64 times), a flag that is given left out, offload to the second tier, a narrower format. Nothing if no plan is
// valid.
[[nodiscard]] std::optional<results::NearestPlan> nearest_plan(const std::string& data_directory,
                                                               const hardware::Catalogue& catalogue,
                                                               const PlanRequest& request);

// "nearest: tp 16, pp 4 ... needs 83.1 GiB a device, which has 75.2 GiB; plans fit with --devices 128, or with
// --offload optimizer".
[[nodiscard]] std::string sentence_of(const results::NearestPlan& nearest);

}  // namespace orrery::api
