// The tables of a run under ASTRA-sim's rules, made of when its nodes started and ended and of what its links counted.
// Private to the room.
#pragma once

#include "orrery/results/simulation_tables.hpp"
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

// Of a machine that has run to its end, of a job with `tables`. Times longer than 213 days,
// which picoseconds cannot count, are cut to that.
[[nodiscard]] results::SimulationTables tables_of(const SimulationJob& job, const Machine& machine);

// Links added up by dimension; what set out in each is left open.
[[nodiscard]] std::vector<results::SimulatedDimension> dimensions_of(const Network& network,
                                                                     const std::vector<results::SimulatedLink>& links);

}  // namespace orrery::simulate
