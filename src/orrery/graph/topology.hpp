// The order in which the nodes of a graph can execute, and the cycle that prevents it.
#pragma once

#include <vector>

#include "orrery/graph/graph.hpp"

namespace orrery::graph {

// Every node after all its parents; of the ready nodes, the one with the smallest position first. This is the order of
// the file if that is valid. Missing parents and dependencies of a node on itself are ignored. Nodes on a cycle, and
// nodes that depend on one, are omitted: the order is complete if it has node_count() entries.
// O(nodes + dependencies) if the file is in order, else O(nodes log(nodes) + dependencies).
[[nodiscard]] std::vector<NodeIndex> run_order(const Graph& graph);

// Nodes of one cycle: each depends on the next, the last on the first. Empty when there is none. `order`: run_order().
[[nodiscard]] std::vector<NodeIndex> cycle_of(const Graph& graph, const std::vector<NodeIndex>& order);

// Calls visit(parent) for every data dependency, then every control dependency of a node; missing parents are skipped.
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
