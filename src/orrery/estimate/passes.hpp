// The step of the critical rank by pass: forward, input gradients, weight gradients, optimizer.
//
// Kernels and collectives belong to the pass that they are launched for. A gather of weights in the backward pass
// belongs to input gradients. A gather of activations that weight gradients need again, and every reduction of
// gradients, belong to weight gradients. Recomputation belongs to no pass.
//
// Exposed time is known exactly by group. Its parts by pass are those of each pass on its own, scaled to that sum: what
// overlaps between passes (DualPipe pairs, expert all-to-alls under the computation of another micro-batch) is taken
// from all of them alike.
#pragma once

#include <span>
#include <vector>

#include "orrery/estimate/explain.hpp"
#include "orrery/estimate/step.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::estimate {

// Exposed communication outside the work of micro-batches, seconds.
struct ExposedOutside {
  Seconds first_gathers;                          // of updated weights: forward
  Seconds reductions;                             // in and after the last backwards: weight gradients
  Seconds forward_transfers, backward_transfers;  // of pipeline stages; only their ratio counts
};

// `groups`: Estimate::comm_by_group. `optimizer`: Breakdown::optimizer. Complexity: O(items of the critical stage).
[[nodiscard]] std::vector<results::PassTime> passes(const Context& context, const parallel::Program& program,
                                                    const Step& step, const ExposedOutside& outside,
                                                    std::span<const results::GroupTime> groups, Seconds optimizer);

}  // namespace orrery::estimate
