// Whether graphs that are given as a collective algorithm can be one: every receive gets its message, nobody waits in a
// circle, and enough moves. Private to the room.
//
// What the graphs do not say cannot be verified: which bytes of the buffer a message carries, and whether computing
// adds them up. Necessary all the same, and checked: after the operation every member has heard of every other, and has
// sent and received at least what the operation needs of anybody, whatever the algorithm:
//
//   S bytes of the node, n members       sent          received
//   ALL_REDUCE                           S             S
//   ALL_GATHER (S a shard)               S             (n - 1) S
//   REDUCE_SCATTER                       S (n - 1)/n   S / n
//   ALL_TO_ALL                           S (n - 1)/n   S (n - 1)/n
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/simulate/algorithm.hpp"
#include "orrery/simulate/custom_program.hpp"

namespace orrery::simulate {

struct CustomUse {
  std::span<const CustomProgram> programs;  // by position
  std::span<const std::uint32_t> members;   // by the number that the graphs call a peer: its position
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;
  std::string prefix;       // of the graphs, for complaints
  bool rendezvous = false;  // sends wait for receives
};

// Fails where a position would send to itself.
[[nodiscard]] Result<void> check_partners(const CustomUse& use);

// Fails where somebody would send to itself, or where, all by itself, a graph cannot come to its end, naming file and
// node. What is odd is returned: messages that nobody receives, members that do not hear of each other, bytes that are
// too few; and graphs that may not end, depending on which of several receives with the same sender, tag and size comes
// first.
[[nodiscard]] Result<std::vector<std::string>> check_custom(const CustomUse& use);

}  // namespace orrery::simulate
