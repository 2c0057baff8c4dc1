// In which order the nodes of a graph can run, and why they cannot.
#pragma once

#include <vector>

#include "orrery/graph/graph.hpp"

namespace orrery::graph {

// Every node after all its parents, of those that are ready the one with the smallest position first: the order of the
// file where the file has one. Parents that are not there and dependencies of a node on itself do not count. Nodes on
// a cycle, and those that wait for one, are left out: the order is complete when it has node_count() entries.
// O(nodes + dependencies) where the file is in order, else times log(nodes) for the nodes.
[[nodiscard]] std::vector<NodeIndex> run_order(const Graph& graph);

// Nodes of one cycle: each depends on the next, the last on the first. Empty when there is none. `order`: run_order().
[[nodiscard]] std::vector<NodeIndex> cycle_of(const Graph& graph, const std::vector<NodeIndex>& order);

// Calls visit(parent) for every data dependency, then every control dependency of a node; only on nodes that are there.
template <class Visit>
void for_each_parent(const Graph& graph, NodeIndex node, const Visit& visit) {
  for (const NodeIndex parent : graph.data_deps(node)) {
    if (graph.present(parent)) { visit(parent); }
  }
  for (const NodeIndex parent : graph.ctrl_deps(node)) {
    if (graph.present(parent)) { visit(parent); }
  }
}

}  // namespace orrery::graph
