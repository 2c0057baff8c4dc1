// Device memory of the ranks of a plan over the time of its simulation.
//
// A rank holds weights, gradients, optimizer state and working buffers all the time. A forward adds the activations
// that its micro-batch keeps when its first kernel starts; the backward removes them when its last kernel ends, or the
// weight gradients do where these are a task of their own. Where a forward and a backward are one task, the backward
// frees layer by layer what the forward adds, so that the exchange counts at the end; under DualPipe the forward counts
// from the start. Offloaded activations are not in the memory of the device. The order of tasks is that of the closed
// form, so the peak of a rank is the memory of its stage in `estimate`.
//
// Left out: the rise and fall inside a task (buffers are held all the time), fragmentation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "orrery/generate/job_graphs.hpp"
#include "orrery/parallel/lowerer.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::api {

struct PlanMemory {
  const parallel::Program& program;
  const parallel::Lowerer& lowerer;  // has lowered the program last
  const generate::JobGraphs& graphs;
};

// Bytes that a plan may use on the device of a rank.
using CapacityOf = std::function<Bytes(std::int64_t rank)>;

// `simulated`: by rank, the simulated rank; `simulation` has spans. O(spans).
[[nodiscard]] results::MemoryOverTime memory_over_time(const PlanMemory& plan, const CapacityOf& capacity_of,
                                                       const results::RankRuns<std::uint32_t>& simulated,
                                                       const results::Simulation& simulation);

}  // namespace orrery::api
