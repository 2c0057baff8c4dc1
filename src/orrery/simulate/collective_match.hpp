// Which collective nodes of different ranks are one collective. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/engine/prefetch.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// The k-th collective of a kind, size, group and set of dimensions is the same on all ranks. Its number k is by
// ascending id in the graph of a rank, not by the order in which the rank reaches them.
class CollectiveMatch {
 public:
  struct One {
    NodeTask task;  // of the first rank that has it
    std::uint32_t ranks = 0;
    std::string custom;  // prefix of its graphs; empty: none
  };

  explicit CollectiveMatch(const SimulationJob& job);

  [[nodiscard]] const std::vector<One>& all() const { return all_; }
  // The collective of a node, and the node of a rank in a collective.
  [[nodiscard]] std::uint32_t collective_of(std::uint32_t rank, std::uint32_t node) const;
  // The same with the place of the node among the collectives of the rank: `place` is where the search starts, such as
  // that of the collective before, and where the node is.
  [[nodiscard]] std::uint32_t collective_of(std::uint32_t rank, std::uint32_t node, std::uint32_t& place) const;
  // Prefetch what it accesses: first, and when that has been fetched.
  void prefetch(std::uint32_t rank) const { engine::prefetch(&collective_of_[rank]); }
  void prefetch(std::uint32_t rank, std::uint32_t place) const {
    engine::prefetch(collective_of_[rank].data() + place);
  }
  [[nodiscard]] std::optional<std::uint32_t> node_of(std::uint32_t rank, std::uint32_t collective) const;

 private:
  std::vector<One> all_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> collective_of_;  // by rank: node, collective
};

}  // namespace orrery::simulate
