// A job with more data-parallel replicas than its graphs have: every rank is copied, and the process groups of data
// parallelism grow over the copies.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "orrery/core/error.hpp"

namespace orrery::simulate {

struct SimulationJob;

// Of a job with R ranks: rank r + R c is copy c of rank r. Computation, messages, and groups that do not grow are as in
// the original, inside a copy. Groups of the names `grown`, and collectives of all ranks, have the members of all
// copies. The whole buffer of their collectives stays: a shard of an all-gather becomes 1 / copies as large (rounded
// up). Fails for names that no group has.
[[nodiscard]] Result<void> copy_ranks(SimulationJob& job, std::uint32_t copies, std::span<const std::string> grown);

}  // namespace orrery::simulate
