// Which collective nodes of different ranks are one collective. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/engine/prefetch.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// The k-th collective of a kind, size, group and set of dimensions is the same on all ranks. Its number k is by
// ascending id in the graph of a rank, not by the order in which the rank reaches them.
//
// Memory: 12 bytes per collective node of a graph, whatever the number of ranks that share it, 4 bytes per collective,
// and 4 bytes per rank, kind, size, group and set of dimensions.
class CollectiveMatch {
 public:
  struct One {
    NodeTask task;  // of the first rank that has it, with its group
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
  void prefetch(std::uint32_t rank) const { engine::prefetch(&ranks_[rank]); }
  void prefetch_series(std::uint32_t rank) const { engine::prefetch(series_.data() + ranks_[rank].first_series); }
  [[nodiscard]] std::optional<std::uint32_t> node_of(std::uint32_t rank, std::uint32_t collective) const;

 private:
  // Collectives of one group that are alike but for their number k.
  struct Key {
    std::uint32_t group = 0;
    Collective collective = Collective::all_reduce;
    std::uint64_t amount = 0;
    std::uint16_t dimensions = 0, custom = 0;

    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {  // a collective node of a graph
    std::uint32_t node = 0;
    std::uint32_t key = 0;  // of the graph
    std::uint32_t k = 0;
  };
  // In entries_ and keys_.
  struct GraphPart {
    std::uint32_t first_entry = 0, entries = 0;
    std::uint32_t first_key = 0, keys = 0;
  };
  struct RankPart {
    std::uint32_t first_entry = 0, entries = 0;
    std::uint32_t first_series = 0;  // in series_; one for each key of its graph
  };
  struct CountedKey {
    Key key;
    std::uint32_t count = 0;
  };

  [[nodiscard]] GraphPart add_graph(const RankGraph& graph);
  [[nodiscard]] std::vector<GraphPart> add_graphs(const RankGraphs& graphs);
  void number(const SimulationJob& job, std::uint32_t rank);
  [[nodiscard]] std::span<const Entry> entries(std::uint32_t rank) const {
    return {entries_.data() + ranks_[rank].first_entry, ranks_[rank].entries};
  }
  [[nodiscard]] std::uint32_t collective_of(std::uint32_t rank, const Entry& entry) const {
    return numbers_[series_[ranks_[rank].first_series + entry.key] + entry.k];
  }

  std::vector<One> all_;
  std::vector<Entry> entries_;          // by graph, then by node
  std::vector<CountedKey> keys_;        // by graph
  std::vector<RankPart> ranks_;         // by rank
  std::vector<std::uint32_t> series_;   // by rank and key of its graph: the position of k = 0 in numbers_
  std::vector<std::uint32_t> numbers_;  // of collectives, by k
};

}  // namespace orrery::simulate
