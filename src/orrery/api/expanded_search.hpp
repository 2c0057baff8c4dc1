// The best plan where what does not fit in device memory is used in place in a second tier (memory_expansion.hpp).
//
// A plan is never faster than on a machine whose device memory has the capacity of both tiers and the best rate that a
// kernel can have. Plans are priced with expansion in the order of that bound, until the bound of the next one is above
// the best time: the result is exact for the model.
#pragma once

#include <string>

#include "orrery/api/inputs.hpp"
#include "orrery/api/memory_expansion.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/study/study.hpp"

namespace orrery::api {

// Of plans that the request names; choices that it leaves open are those that `estimate` finds for some capacity of the
// second tier. A result that is not feasible fits in neither tier, and its time means nothing.
[[nodiscard]] Result<Expanded> expanded_plan(const estimate::Request& request, const Inputs& inputs,
                                             study::ExpansionRule rule);

// Of all plans of a search. Fails, with the answer no, if none fits in both tiers.
[[nodiscard]] Result<Expanded> best_expanded(const std::string& data_directory, const PlanRequest& request,
                                             Inputs inputs, study::ExpansionRule rule);

}  // namespace orrery::api
