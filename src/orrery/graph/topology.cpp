#include "orrery/graph/topology.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "orrery/core/error.hpp"

namespace orrery::graph {

namespace {

bool is_in_order(const Graph& graph) {
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    bool later = false;
    for_each_parent(graph, node, [&](NodeIndex parent) { later = later || parent > node; });
    if (later) { return false; }
  }
  return true;
}

std::vector<std::uint32_t> parent_counts(const Graph& graph) {
  std::vector<std::uint32_t> counts(graph.node_count(), 0);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    for_each_parent(graph, node, [&](NodeIndex parent) { counts[node] += parent == node ? 0U : 1U; });
  }
  return counts;
}

}  // namespace

std::vector<NodeIndex> run_order(const Graph& graph) {
  std::vector<NodeIndex> order;
  if (is_in_order(graph)) {
    order.resize(graph.node_count());
    std::iota(order.begin(), order.end(), NodeIndex{0});
    return order;
  }
  order.reserve(graph.node_count());
  std::vector<std::uint32_t> unsatisfied = parent_counts(graph);
  const Children children(graph);
  std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<>> ready;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (unsatisfied[node] == 0) { ready.push(node); }
  }
  while (!ready.empty()) {
    const NodeIndex node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const NodeIndex child : children.of(node)) {
      if (child != node && --unsatisfied[child] == 0) { ready.push(child); }
    }
  }
  return order;
}

std::vector<NodeIndex> cycle_of(const Graph& graph, const std::vector<NodeIndex>& order) {
  if (order.size() == graph.node_count()) { return {}; }
  std::vector<bool> runs(graph.node_count(), false);
  for (const NodeIndex node : order) { runs[node] = true; }
  const auto first = std::find(runs.begin(), runs.end(), false);
  // A node that never runs waits for another that never runs: following these waits closes a cycle.
  std::vector<std::uint32_t> step(graph.node_count(), 0);
  std::vector<NodeIndex> path;
  for (auto node = static_cast<NodeIndex>(first - runs.begin()); step[node] == 0;) {
    path.push_back(node);
    step[node] = static_cast<std::uint32_t>(path.size());
    NodeIndex next = node;
    for_each_parent(graph, node, [&](NodeIndex parent) {
      if (next == node && parent != node && !runs[parent]) { next = parent; }
    });
    ORRERY_ASSERT(next != node);
    node = next;
    if (step[node] != 0) { path.erase(path.begin(), path.begin() + (step[node] - 1)); }
  }
  return path;
}

}  // namespace orrery::graph
