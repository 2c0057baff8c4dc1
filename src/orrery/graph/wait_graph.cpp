#include "orrery/graph/wait_graph.hpp"

#include <algorithm>
#include <limits>

#include "orrery/core/error.hpp"
#include "orrery/graph/topology.hpp"

namespace orrery::graph {

void WaitGraph::add(std::uint64_t rank, const Graph& graph) {
  ORRERY_ASSERT(parent_in_set_.size() + graph.node_count() < std::numeric_limits<Member>::max());
  const auto first = static_cast<Member>(parent_in_set_.size());
  Rank added{rank, first, {}};
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    parent_in_set_.push_back(first + node);
    added.ids.push_back(graph.id(node));
    for_each_parent(graph, node, [&](NodeIndex parent) {
      if (parent != node) { wait(first + node, first + parent); }
    });
  }
  positions_[rank] = ranks_.size();
  ranks_.push_back(std::move(added));
}

WaitGraph::Member WaitGraph::member(std::uint64_t rank, NodeIndex node) const {
  return ranks_[positions_.at(rank)].first + node;
}

WaitGraph::Member WaitGraph::representative(Member member) {
  while (parent_in_set_[member] != member) {
    parent_in_set_[member] = parent_in_set_[parent_in_set_[member]];
    member = parent_in_set_[member];
  }
  return member;
}

void WaitGraph::join(Member a, Member b) { parent_in_set_[representative(b)] = representative(a); }

WaitGraph::BlockedNode WaitGraph::blocked_node(Member member) const {
  const auto after = std::upper_bound(ranks_.begin(), ranks_.end(), member,
                                      [](Member wanted, const Rank& rank) { return wanted < rank.first; });
  const Rank& rank = *std::prev(after);
  return {rank.rank, rank.ids[member - rank.first]};
}

// Kahn's algorithm on the sets of joined nodes. Returns the number of unsatisfied dependencies of each representative.
// Those above 0 are on a cycle, or depend on one.
std::vector<std::uint32_t> WaitGraph::unsatisfied_counts() {
  const std::size_t count = parent_in_set_.size();
  std::vector<std::uint64_t> begin(count + 2, 0);
  std::vector<std::uint32_t> unsatisfied(count, 0);
  for (const auto& [child, parent] : waits_) {
    ++begin[representative(parent) + 2];
    ++unsatisfied[representative(child)];
  }
  for (std::size_t i = 1; i < begin.size(); ++i) { begin[i] += begin[i - 1]; }
  std::vector<Member> children(waits_.size());
  for (const auto& [child, parent] : waits_) { children[begin[representative(parent) + 1]++] = representative(child); }
  std::vector<Member> ready;
  for (Member member = 0; member < count; ++member) {
    if (unsatisfied[member] == 0) { ready.push_back(member); }
  }
  while (!ready.empty()) {
    const Member member = ready.back();
    ready.pop_back();
    for (std::uint64_t at = begin[member]; at < begin[member + 1]; ++at) {
      if (--unsatisfied[children[at]] == 0) { ready.push_back(children[at]); }
    }
  }
  return unsatisfied;
}

std::vector<WaitGraph::BlockedNode> WaitGraph::cycle() {
  const std::vector<std::uint32_t> unsatisfied = unsatisfied_counts();
  const auto count = static_cast<Member>(parent_in_set_.size());
  std::vector<std::pair<Member, Member>> blocked(
      count);  // of each remaining node, a dependency on another remaining node
  Member at = count;
  for (const auto& [child, parent] : waits_) {
    if (unsatisfied[representative(child)] == 0 || unsatisfied[representative(parent)] == 0) { continue; }
    blocked[representative(child)] = {child, parent};
    at = representative(child);
  }
  if (at == count) { return {}; }
  std::vector<bool> seen(count, false);
  for (; !seen[at]; at = representative(blocked[at].second)) { seen[at] = true; }
  std::vector<BlockedNode> nodes;
  const Member start = at;
  do {
    const auto [child, parent] = blocked[at];
    nodes.push_back(blocked_node(child));
    at = representative(parent);
    // At a collective, the awaited node and the waiting node are of different ranks.
    if (blocked[at].first != parent) { nodes.push_back(blocked_node(parent)); }
  } while (at != start);
  return nodes;
}

}  // namespace orrery::graph
