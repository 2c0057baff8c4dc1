// A collective over several dimensions as single messages: the member schedules (member_schedule.hpp) of its phases,
// one for every line of members along the phase's dimension, with the blocks of the whole buffer. For correctness
// checks and the simulation of single messages; the closed form needs the figures of the phases only.
//
// Limits: a broadcast's root is position 0; copies inside a member are not messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/member_schedule.hpp"
#include "orrery/network/schedule.hpp"

namespace orrery::network {

// Positions number the group's members, innermost extent fastest; switches that take part follow.
struct Transfer {
  std::int64_t round = 0;  // of the software pipeline of chunks (chunking.hpp)
  std::int64_t chunk = 0;
  std::int64_t step = 0;  // within the phase
  std::size_t phase = 0;  // index into Schedule::phases
  std::int64_t source = 0, destination = 0;
  std::int64_t first_block = 0, blocks = 0;  // consecutive
  // Blocks that a switch copies also to the member that sent them: they load its port and change nothing.
  std::int64_t returned_blocks = 0;
  bool reduces = false;  // added to what the destination has; otherwise stored
};

// The buffer is cut into blocks of equal size, numbered chunk by chunk. Within a chunk, block (x0, x1, ...) of a group
// with several extents has index (x0 * cuts1 + x1) * cuts2 + ...; x is the member that owns the block along an extent,
// or the tree that sends it. A flat ring cuts each of these once more, into as many blocks as a node has members.
// all_to_all: block `source * members + destination`.
struct Composition {
  std::int64_t members = 1, participants = 1;
  std::int64_t blocks_per_chunk = 1;
  std::int64_t blocks = 0;
  Bytes block_bytes;
  std::vector<Transfer> transfers;  // by round; within a round older chunks first, then by phase and step
};

[[nodiscard]] Composition compose(const Schedule& schedule, const Group& group);

// The first of the phases that are concurrent with `phase`.
[[nodiscard]] std::size_t first_concurrent(const Schedule& schedule, std::size_t phase);

}  // namespace orrery::network
