// A job with one collective on all ranks, without graph files.
#pragma once

#include <cstdint>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/simulate/flow_job.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// `machine`: from read_machine. `bytes`: as Chakra's comm_size, which is one rank's shard for an all-gather. All
// dimensions take part. Fails if the system file has no algorithm for the collective, or if the graphs of a custom one
// cannot be read.
[[nodiscard]] Result<SimulationJob> one_collective(const SimulationJob& machine, Collective collective,
                                                   std::uint64_t bytes);

// The same on all devices of a cluster, as flows. `bytes` as in nccl-tests.
[[nodiscard]] FlowJob one_collective(const hardware::Cluster& cluster, Collective collective, std::uint64_t bytes,
                                     CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic);

// The algorithms that run it, one per dimension: "ring", "direct2,halvingDoubling", "custom PREFIX"; "" for none.
[[nodiscard]] std::string algorithm_text(const System& system, Collective collective);

}  // namespace orrery::simulate
