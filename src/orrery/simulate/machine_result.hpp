// What a run under ASTRA-sim's rules says. Private to the room.
#pragma once

#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

// After a run in which all ranks have finished.
[[nodiscard]] results::Simulation result_of(const SimulationJob& job, const Machine& machine);

}  // namespace orrery::simulate
