// Accelerators that are slower or faster than the others.
#pragma once

#include <cstdint>
#include <span>

#include "orrery/core/error.hpp"

namespace orrery::simulate {

struct SimulationJob;

// Ranks first .. last: kernels take `slowdown` times as long.
struct Straggler {
  std::uint32_t first = 0, last = 0;
  double slowdown = 1.0;
};

// Of a job with every rank, under physical semantics. Nodes of the accelerator only: neither host nor communication.
// Fails for ranks that the job does not have.
[[nodiscard]] Result<void> slow_ranks(SimulationJob& job, std::span<const Straggler> stragglers);

}  // namespace orrery::simulate
