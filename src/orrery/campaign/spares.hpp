// Nodes in repair, spare nodes, and what a job does without them.
//
// Nodes fail one by one at N r, and in groups (a rack that fails as a whole) at G r_g with m nodes each; each is
// repaired after T on average. Single nodes in repair are then a Poisson count of mean a = N r T, whatever the
// distribution of repair times (M/G/inf). Groups make it a compound Poisson count: mean N r T + G r_g m T, variance N r
// T + G r_g m^2 T; its distribution is computed exactly by Panjer's recursion (ASTIN Bulletin 12, 1981). Left out:
// repair crews that are busy; spares that fail.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace orrery::campaign {

// Failures that take `nodes` nodes at once; `in_repair`: mean number of such groups in repair at a time.
struct RepairClass {
  std::int64_t nodes = 1;
  double in_repair = 0;
};

// P(K = k) for k = 0, 1, ... until the rest is below 1e-15.
[[nodiscard]] std::vector<double> repair_distribution(std::span<const RepairClass> classes);

// Smallest s with P(K <= s) >= p.
[[nodiscard]] std::int64_t spares_for(double p, std::span<const double> distribution);
[[nodiscard]] double mean_of(std::span<const double> distribution);

// Without a spare node: stand until one is repaired, or go on with fewer replicas.
struct Shortage {
  double share = 0;    // of time in which a node is missing: P(K > s)
  double missing = 0;  // nodes that are missing, mean over time
};
[[nodiscard]] Shortage shortage(std::int64_t spares, std::span<const double> distribution);

// Mean throughput / throughput with all nodes, of `nodes` nodes in replicas of `replica` nodes. Fixed groups: each
// missing node, one of all at random, stops its replica, E[(1 - replica/nodes)^missing]. Regrouped: the survivors form
// whole replicas, E[floor((nodes - missing) / replica)] replica / nodes.
// `speed`: throughput of so many nodes (whole replicas) / of all; proportional without it. Between whole replicas it is
// linear. Counts of missing nodes with a probability below 1e-9 take the speed of the last one above.
using Speed = std::function<double(std::int64_t nodes)>;
[[nodiscard]] double fixed_throughput(std::int64_t nodes, std::int64_t replica, std::int64_t spares,
                                      std::span<const double> distribution, const Speed& speed = {});
[[nodiscard]] double regrouped_throughput(std::int64_t nodes, std::int64_t replica, std::int64_t spares,
                                          std::span<const double> distribution, const Speed& speed = {});

// E[maximum of n standard normal variables]: the slowest of n nodes is this many standard deviations slower than the
// mean. n at least 1.
[[nodiscard]] double expected_maximum(std::int64_t n);

// The share of failures of `lost` of `nodes` nodes at once, chosen at random, that leave a copy in memory, if every
// group of `copies` nodes has the same copies: for two copies and two nodes 1 - (nodes / 2) / C(nodes, 2). Placement in
// groups: GEMINI, SOSP 2023, section 4.
[[nodiscard]] double surviving_share(std::int64_t nodes, std::int64_t copies, std::int64_t lost);

}  // namespace orrery::campaign
