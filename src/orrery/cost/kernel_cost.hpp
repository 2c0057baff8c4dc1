// The time of one kernel on one accelerator, and why it takes that long.
#pragma once

#include <cstdint>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/kernel.hpp"

namespace orrery::cost {

enum class Bound : std::uint8_t { none, compute, memory, latency };  // what a kernel waits for most

struct KernelCost {
  Seconds time;     // = pace (latency + casts + (compute^4 + memory^4)^(1/4))
  Seconds compute;  // of a typical device, as what follows: matrix units busy, tiles and waves included
  Seconds memory;   // traffic / reachable bandwidth
  Seconds casts;    // narrow operands made of wide ones, before
  Seconds latency;  // what every launch takes beside its work
  Bound bound = Bound::none;
};

// Of the slowest node where the accelerator is of a job's (Accelerator::pace).
// Errors: none. A kernel of kind none costs nothing; one whose precision the accelerator lacks takes infinite time.
[[nodiscard]] KernelCost kernel_cost(const hardware::Kernel& kernel, const hardware::Accelerator& accelerator);

}  // namespace orrery::cost
