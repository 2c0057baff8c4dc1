#include "orrery/parallel/rank_nodes.hpp"

namespace orrery::parallel {

std::size_t nodes_entry(const hardware::Cluster& cluster, const Layout& layout, std::int64_t rank) {
  if (cluster.nodes.empty()) { return 0; }
  std::int64_t node = 0, stride = 1;
  for (std::size_t d = 1; d < cluster.dimensions.size(); ++d) {
    node += stride * position_on(layout, static_cast<int>(d), rank);
    stride *= cluster.dimensions[d].size;
  }
  return cluster.nodes_entry(node * cluster.node_size());
}

}  // namespace orrery::parallel
