// One rank for all of a job in ASTRA-sim's files whose ranks do the same at the same time.
//
// Under physical rules no result depends on rank numbers (docs/models/physical.md). Under ASTRA-sim's, events of one
// instant are handled in an order that does, so that the run needs a certificate that no result depends on that order
// (order_certificate.hpp, docs/models/astra-sim.md).
#pragma once

#include <string>

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// Why the ranks of a job differ; empty if they do not, apart from the order in which they handle events of one instant.
[[nodiscard]] std::string one_rank_obstacle(const SimulationJob& job);

struct OneRankRun {
  results::Simulation simulation;
  std::string unfolded_because;  // why every rank was simulated; empty if one was
};

// The result of simulate(job): of one rank if it can stand for all and the certificate holds, else of all ranks. `job`:
// not with Backend::flow.
[[nodiscard]] Result<OneRankRun> simulate_folded(const SimulationJob& job);

}  // namespace orrery::simulate
