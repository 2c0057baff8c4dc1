// One rank for all of a job in ASTRA-sim's files whose ranks do the same at the same time.
//
// Under physical rules no result depends on rank numbers (docs/models/physical.md). Under ASTRA-sim's, events of one
// instant are handled in an order that does, so that the run needs a certificate that no result depends on that order
// (order_certificate.hpp, docs/models/astra-sim.md).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// Why the ranks of a job differ; empty if they do not, apart from the order in which they handle events of one instant.
[[nodiscard]] std::string one_rank_obstacle(const SimulationJob& job);

// Parts of it that hold for one rank of each class, too (physical_classes.hpp). Of what the job is to find and of its
// machine; of the kind of a collective; of an algorithm on a dimension of the network. Empty: none.
[[nodiscard]] std::string physical_job_obstacle(const SimulationJob& job);
[[nodiscard]] std::string kind_obstacle(const SimulationJob& job, Collective collective);
[[nodiscard]] std::string algorithm_obstacle(const SimulationJob& job, Collective collective,
                                             const DimensionAlgorithm& algorithm, std::size_t dimension);

struct OneRankRun {
  results::Simulation simulation;
  std::string unfolded_because;  // why every rank was simulated; empty if fewer were
};

// The result of simulate(job): of one rank if it can stand for all and the certificate holds; under physical rules else
// of one rank of each class; else of all ranks. `job`: not with Backend::flow. `clock`, in seconds: with it, the result
// has the time that finding classes took.
[[nodiscard]] Result<OneRankRun> simulate_folded(const SimulationJob& job, const std::function<double()>& clock = {});

}  // namespace orrery::simulate
