// The tables of a run under ASTRA-sim's rules, from the spans of its nodes and the counts of its links. Private to the
// room.
#pragma once

#include "orrery/results/simulation_tables.hpp"
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

// `machine`: after run(), with a job that has `tables`. Times above 213 days, the maximum in picoseconds, are cut to
// 213 days.
[[nodiscard]] results::SimulationTables tables_of(const SimulationJob& job, const Machine& machine);

// Sums over the links of each dimension. The messages and bytes that were sent in a dimension are not set.
[[nodiscard]] std::vector<results::SimulatedDimension> dimensions_of(const Network& network,
                                                                     const std::vector<results::SimulatedLink>& links);

}  // namespace orrery::simulate
