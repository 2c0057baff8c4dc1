// Collective operations and the algorithms that carry them out: one enum each, for all rooms.
//
// Numberings and names of other programs are converted where their files are read: Chakra's comm_type in
// graph/chakra_collective.hpp, ASTRA-sim's algorithm names in simulate/builtin.cpp, spellings of measurement tables in
// validate/rules_collectives.cpp.
#pragma once

#include <cstdint>

namespace orrery {

// The first four are those that ASTRA-sim and MAD-Max have: arrays by collective rely on their order.
enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  barrier,
};

// Has a root: a rank that has or receives the whole buffer.
[[nodiscard]] constexpr bool is_rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

enum class CollectiveAlgorithm : std::uint8_t {
  automatic,         // not an algorithm: the cheapest one is chosen
  ring,              // to the next member; all_to_all: along the shorter direction; rooted: a chain from or to the root
  tree,              // two binary trees, each with half of the buffer
  direct,            // every member to every other member
  in_switch,         // the switch reduces and multicasts
  flat_ring,         // one ring through all members of a group that spans several network dimensions
  halving_doubling,  // pairs of members whose distance doubles or halves; rooted: binomial trees
  hierarchical,      // dimension by dimension, in chunks that follow each other: the cheapest way without switches
};

}  // namespace orrery
