// Runs a job of graphs under physical rules: docs/models/physical.md. Private to the room; simulate.hpp is the
// interface.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

[[nodiscard]] Result<results::Simulation> simulate_physical(const SimulationJob& job);

}  // namespace orrery::simulate
