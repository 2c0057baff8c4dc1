// Checks graphs that are given as a collective algorithm: every receive has a message, there is no deadlock, and enough
// bytes are sent. Private to the room.
//
// The graphs do not specify which bytes of the buffer a message contains and whether compute nodes reduce them, so that
// is not verified. Necessary conditions are: at the end, data of every member has reached every other member, and every
// member has sent and received at least the bytes that any algorithm needs:
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
  std::span<const std::uint32_t> members;   // by peer number in the graphs: its position
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;
  std::string prefix;       // of the graphs, for messages
  bool rendezvous = false;  // sends wait for receives
};

// Fails if a position sends to itself.
[[nodiscard]] Result<void> check_partners(const CustomUse& use);

// Fails, with file and node, if a position sends to itself or if the graphs cannot complete with their own messages
// only. Returns anomalies: messages without a receive, members whose data does not reach each other, too few bytes, and
// graphs that may deadlock depending on which of several receives with the same sender, tag and size runs first.
[[nodiscard]] Result<std::vector<std::string>> check_custom(const CustomUse& use);

}  // namespace orrery::simulate
