// Plans with memory expansion (memory_expansion.hpp): of a request, and the best ones of a search.
//
// A plan is never faster than on a machine whose device memory has the capacity of both tiers and the best rate that a
// kernel can have. Plans are priced with expansion in the order of that bound, until the bound of the next one is above
// the worst of the times that are kept: the result is exact for the model.
#pragma once

#include <string>
#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/api/memory_expansion.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/results/plan.hpp"

namespace orrery::api {

// The same request on one tier of memory; `read_inputs` takes no other.
[[nodiscard]] estimate::Request without_expansion(estimate::Request request);

// Of plans that the request names; choices that it leaves open are those that `estimate` finds for some capacity of the
// second tier. A result that is not feasible fits in neither tier, and its time means nothing.
[[nodiscard]] Result<EstimateAnswer> expanded_plan(const estimate::Request& request, const Inputs& inputs,
                                                   estimate::Detail detail = {});

// The best plans of a search, by step time. Counts of the space are those of the bound's machine; `nothing_fits` says
// why there is none. Fails for what only other objectives and answers need.
[[nodiscard]] Result<results::PlanSearch> expanded_search(const std::string& data_directory, const PlanRequest& request,
                                                          Inputs inputs);

// Parts of a request for plans that there is no expansion with.
[[nodiscard]] std::vector<Diagnostic> not_with_expansion(const PlanRequest& request);

}  // namespace orrery::api
