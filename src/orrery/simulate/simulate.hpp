// Runs a job of graphs under ASTRA-sim's rules: the same cycles for every rank, to the nanosecond. What is reproduced,
// defects included, and what is not: docs/models/astra-sim.md.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// Fails where ranks cannot finish, with the cause of the deadlock. Several may run at once; the outcome depends
// on the job alone.
[[nodiscard]] Result<results::Simulation> simulate(const SimulationJob& job);

}  // namespace orrery::simulate
