// Which nodes the ranks of a plan lie on, in a cluster whose nodes have different accelerators (Cluster::nodes).
#pragma once

#include <cstddef>
#include <cstdint>

#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/layout.hpp"

namespace orrery::parallel {

// The node of a rank, in the order of devices.
[[nodiscard]] std::int64_t node_of(const hardware::Cluster& cluster, const Layout& layout, std::int64_t rank);

// Entry of Cluster::nodes that the node of a rank is of; 0 if all nodes are alike.
[[nodiscard]] std::size_t nodes_entry(const hardware::Cluster& cluster, const Layout& layout, std::int64_t rank);

}  // namespace orrery::parallel
