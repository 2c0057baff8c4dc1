// On which network dimensions the process groups of a plan lie.
#pragma once

#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::estimate {

// Groups of more than one rank, in the order tp, cp, ep, etp, dp, expert_dp, tables, pp. The one extent of pp is the
// outermost dimension that a transfer between stages crosses.
[[nodiscard]] std::vector<results::GroupShape> group_shapes(const parallel::Program& program,
                                                            const hardware::Cluster& cluster);

}  // namespace orrery::estimate
