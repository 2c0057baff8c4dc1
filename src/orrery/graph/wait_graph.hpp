// Who waits for whom over the nodes of several graphs, of which some run as one (the sides of a collective). 12
// bytes a dependency and 24 a node. Private to the room.
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
  using Member = std::uint32_t;  // a node of a rank; all ranks together have less than 2^32

  void add(std::uint64_t rank, const Graph& graph);

  [[nodiscard]] Member at(std::uint64_t rank, NodeIndex node) const;

  // The two run as one.
  void join(Member a, Member b);

  // `child` cannot run before `parent`.
  void wait(Member child, Member parent) { waits_.emplace_back(child, parent); }

  // Nodes that wait for each other in a circle, each for the next; empty when there are none. Dependencies of a node on
  // itself do not count.
  [[nodiscard]] std::vector<BlockedNode> cycle();

 private:
  struct Rank {
    std::uint64_t rank = 0;
    Member first = 0;  // of its nodes
    std::vector<std::uint64_t> ids;
  };

  [[nodiscard]] std::vector<std::uint32_t> left_waiting();  // dependencies of each leader that are never met
  [[nodiscard]] Member leader(Member member);
  [[nodiscard]] BlockedNode blocked_node(Member member) const;

  std::vector<Rank> ranks_;  // in the order they came
  std::map<std::uint64_t, std::size_t> positions_;
  std::vector<Member> leader_;                    // of each member, towards the one that stands for all that are joined
  std::vector<std::pair<Member, Member>> waits_;  // child, parent
};

}  // namespace orrery::graph
