// A schedule expanded to single transfers between two members, each with its blocks and whether they are reduced. Built
// from the same phases as the closed form, for correctness checks, event simulation and export.
//
// Limits: a broadcast's root is position 0; staging inside a member is not a transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/schedule.hpp"

namespace orrery::network {

// Positions number the group's members, innermost extent fastest.
//
// A pattern through a reducing switch consists of transfers between members, also from a member to itself, because a
// member's own part passes the switch too. In a switch_up, the ports of members send all transfers and receive only the
// reduced results (the transfers from a member to itself). In a switch_down or multicast it is the reverse.
struct Transfer {
  std::int64_t round = 0;  // of the software pipeline
  std::int64_t chunk = 0;
  std::int64_t step = 0;  // within the phase
  std::size_t phase = 0;  // index into Schedule::phases
  std::int64_t source = 0, destination = 0;
  std::int64_t first_block = 0, blocks = 0;  // consecutive
  bool reduces = false;                      // added to what the destination has; otherwise stored
};

// The buffer is cut into blocks of equal size, numbered chunk by chunk. Within a chunk, block (x0, x1, ...) of a group
// with several extents has index (x0 * cuts1 + x1) * cuts2 + ...; x is the member that owns the block along an extent,
// or the tree that sends it. A flat ring cuts each of these once more, into as many blocks as a node has members.
// all_to_all: block `source * members + destination`.
struct Expansion {
  std::int64_t members = 1;
  std::int64_t blocks_per_chunk = 1;
  std::int64_t blocks = 0;
  Bytes block_bytes;
  std::vector<Transfer> transfers;  // by round; within a round older chunks first, then by phase and step
};

// The first of the phases that are concurrent with `phase`.
[[nodiscard]] std::size_t first_concurrent(const Schedule& schedule, std::size_t phase);

[[nodiscard]] Expansion expand(const Schedule& schedule, const Group& group);

struct TreeNode {
  std::optional<std::int64_t> parent;  // the root has none
  std::int64_t depth = 0;
};

// The binary tree `which` (0 or 1) over n members. A member has at most two children in both trees together.
[[nodiscard]] std::vector<TreeNode> double_tree(std::int64_t n, int which);

}  // namespace orrery::network
