#include "orrery/parallel/rank_nodes.hpp"

namespace orrery::parallel {

std::int64_t node_of(const hardware::Cluster& cluster, const Layout& layout, std::int64_t rank) {
  std::int64_t node = 0, stride = 1;
  for (std::size_t d = 1; d < cluster.dimensions.size(); ++d) {
    node += stride * position_on(layout, static_cast<int>(d), rank);
    stride *= cluster.dimensions[d].size;
  }
  return node;
}

std::size_t nodes_entry(const hardware::Cluster& cluster, const Layout& layout, std::int64_t rank) {
  return cluster.nodes.empty() ? 0 : cluster.nodes_entry(node_of(cluster, layout, rank) * cluster.node_size());
}

}  // namespace orrery::parallel
