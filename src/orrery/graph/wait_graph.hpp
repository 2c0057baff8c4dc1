// Dependencies between the nodes of several graphs, in which the nodes of a collective are joined. 12 bytes per
// dependency and 24 per node. Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "orrery/graph/graph.hpp"

namespace orrery::graph {

class WaitGraph {
 public:
  struct BlockedNode {
    std::uint64_t rank = 0;
    std::uint64_t id = 0;
  };
  using Member = std::uint32_t;  // a node of a rank; all ranks together have fewer than 2^32

  void add(std::uint64_t rank, const Graph& graph);

  [[nodiscard]] Member member(std::uint64_t rank, NodeIndex node) const;

  // The two nodes execute together.
  void join(Member a, Member b);

  // `child` cannot execute before `parent`.
  void wait(Member child, Member parent) { waits_.emplace_back(child, parent); }

  // Nodes of a cycle, each of which waits for the next; empty if there is none. Dependencies of a node on itself are
  // ignored.
  [[nodiscard]] std::vector<BlockedNode> cycle();

 private:
  struct Rank {
    std::uint64_t rank = 0;
    Member first = 0;  // of its nodes
    std::vector<std::uint64_t> ids;
  };

  [[nodiscard]] std::vector<std::uint32_t> unsatisfied_counts();  // by representative
  [[nodiscard]] Member representative(Member member);
  [[nodiscard]] BlockedNode blocked_node(Member member) const;

  std::vector<Rank> ranks_;  // in the order of addition
  std::map<std::uint64_t, std::size_t> positions_;
  std::vector<Member> parent_in_set_;             // union-find: towards the representative of joined nodes
  std::vector<std::pair<Member, Member>> waits_;  // child, parent
};

}  // namespace orrery::graph
