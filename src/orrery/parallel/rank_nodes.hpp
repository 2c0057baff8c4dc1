// Which nodes the ranks of a plan lie on, in a cluster whose nodes have different accelerators (Cluster::nodes).
#pragma once

#include <cstddef>
#include <cstdint>

#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/layout.hpp"

namespace orrery::parallel {

// Entry of Cluster::nodes that the node of a rank is of; 0 if all nodes are alike.
[[nodiscard]] std::size_t nodes_entry(const hardware::Cluster& cluster, const Layout& layout, std::int64_t rank);

}  // namespace orrery::parallel
