// What would change the answer: for every figure of the hardware, and the batch, the nearest value at which another
// layout (tp, cp, pp, dp, ep, etp) wins, found by exact searches.
//
// A figure is looked at 1.25, 1.5, 2, 3 and 4 times as large and as small, up to the first of these at which another
// layout wins; between that one and the one before it the interval is halved until its ends are 2 % apart. A layout
// that wins only between two values that were looked at is not seen.
//
// Batches keep every division of sequences over replicas possible: they are multiples of the greatest common divisor of
// batch and devices; downwards also a half, a third and a quarter of the batch.
#pragma once

#include <functional>
#include <vector>

#include "orrery/api/orrery.hpp"
#include "orrery/api/planning.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/results/what_if.hpp"

namespace orrery::api {

// Every figure up and down. `winner`: of a search over the problem as it is. `progress` is told how many are done of
// all.
[[nodiscard]] std::vector<results::Flip> what_if(const PlanRequest& request, const Problem& problem,
                                                 const parallel::Plan& winner,
                                                 const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace orrery::api
