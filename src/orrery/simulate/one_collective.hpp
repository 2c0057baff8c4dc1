// A job of one collective on all ranks, made without graphs.
#pragma once

#include <cstdint>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// `machine`: from read_machine. `bytes`: as Chakra's comm_size, which of an all-gather is one rank's shard. All
// dimensions take part. Fails where the system file has no algorithm for the operation, or the graphs of a custom one
// cannot be read.
[[nodiscard]] Result<SimulationJob> one_collective(const SimulationJob& machine, Collective collective,
                                                   std::uint64_t bytes);

// The algorithms that run it, one per dimension: "ring", "direct2,halvingDoubling", "custom PREFIX"; "" for none.
[[nodiscard]] std::string algorithm_text(const System& system, Collective collective);

}  // namespace orrery::simulate
