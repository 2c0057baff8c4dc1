// The time of one kernel on one accelerator, and why it takes that long.
#pragma once

#include <cstdint>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/kernel.hpp"

namespace orrery::cost {

enum class Bound : std::uint8_t { none, compute, memory, latency };  // the largest part of the time

struct KernelCost {
  Seconds time;     // = slowdown x (latency + casts + (compute^4 + memory^4)^(1/4)), see Accelerator::slowdown
  Seconds compute;  // matrix units, with partly filled tiles and waves; this and the next are of the median device
  Seconds memory;   // memory_traffic() / reachable bandwidth
  Seconds casts;    // conversion of wide operands to narrow ones before the kernel
  Seconds latency;  // fixed time of every launch
  Bound bound = Bound::none;
};

// Bytes between device memory and the chip. Kernel::bytes; of GEMMs under GemmTraffic::blocked more where no operand
// fits in the cache.
[[nodiscard]] Bytes memory_traffic(const hardware::Kernel& kernel, const hardware::Accelerator& accelerator);

// Of a kernel's traffic, the part that goes to a second tier with these shares of every class of tensors. Repeated
// reads are divided as its compulsory traffic is.
[[nodiscard]] double second_tier_part(const hardware::Kernel& kernel, const hardware::ByClass<double>& shares);

// (compute^4 + memory^4)^(1/4), seconds: the time of arithmetic and loads that overlap.
[[nodiscard]] double overlapped_seconds(double compute, double memory);

// Peaks of the matrix units that count for a kernel. They depend on its kind and precision alone.
struct MatrixPeaks {
  FlopsPerSecond own, bf16;
};
[[nodiscard]] MatrixPeaks matrix_peaks(const hardware::Kernel& kernel, const hardware::Accelerator& accelerator);

// In a job the time is that of the slowest node (stragglers: Accelerator::slowdown > 1).
// Errors: none. A kernel of kind none takes no time; one whose precision the accelerator lacks takes infinite time.
[[nodiscard]] KernelCost kernel_cost(const hardware::Kernel& kernel, const hardware::Accelerator& accelerator);
// The same where the peaks are known: many kernels of one kind and precision.
[[nodiscard]] KernelCost kernel_cost(const hardware::Kernel& kernel, const hardware::Accelerator& accelerator,
                                     const MatrixPeaks& peaks);

}  // namespace orrery::cost
