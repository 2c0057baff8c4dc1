// A run over time.
#pragma once

#include "orrery/results/serving.hpp"
#include "orrery/serving/fleet.hpp"

namespace orrery::serving {

// From the first arrival to the last answer. `pools`: those of the run, with their names.
[[nodiscard]] results::ServingSeries series_of(const Workload& load, const std::vector<results::ServingPool>& pools,
                                               const FleetRun& run, double request_overhead_s);

}  // namespace orrery::serving
