// What would change the result: for every hardware figure and the batch, the nearest value at which another layout (tp,
// cp, pp, dp, ep, etp) wins, found by exact searches.
//
// A figure is tried at 1.25, 1.5, 2, 3 and 4 times its value, and at the inverse factors, up to the first factor at
// which another layout wins. The interval between that factor and the previous one is then halved until its ends are 2
// % apart. A layout that wins only between two tried values is not found.
//
// Batches keep every degree of dp possible: they are multiples of the greatest common divisor of batch and devices;
// downwards also a half, a third and a quarter of the batch.
#pragma once

#include <functional>
#include <vector>

#include "orrery/api/orrery.hpp"
#include "orrery/api/planning.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/results/what_if.hpp"

namespace orrery::api {

// All figures, up and down. `winner`: of the search with the original values. `progress` gets the number of finished
// searches and the total.
[[nodiscard]] std::vector<results::Flip> what_if(const PlanRequest& request, const Problem& problem,
                                                 const parallel::Plan& winner,
                                                 const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace orrery::api
