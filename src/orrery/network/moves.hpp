// A collective as steps of its members: what member p of n sends and receives in step s. Nothing is stored: peers and
// blocks are computed on request, so that a simulator of a million members stores none of it, and the checker (every
// byte is reduced and delivered exactly once), the simulator and an export read the same steps.
//
// The one rule of a schedule: what a member sends in step s waits for all that it receives in steps before s, reduced
// where it is reduced, and for nothing else. A message that is sent in step s is received in step s.
//
// The buffer of a chunk is cut into blocks() blocks of equal size. all_to_all: every member has a row of n blocks, the
// one in column q for member q; elsewhere there is one row. Who starts with what, and ends with what:
//
//   all_reduce      every member: all blocks         every member: all blocks, reduced
//   reduce_scatter  every member: all blocks         member p: block p, reduced
//   all_gather      member p: block p                every member: all blocks
//   all_to_all      member p: row p                  member p: column p of every row
//   broadcast       the root: all blocks             every member: all blocks
//   reduce          every member: all blocks         the root: all blocks, reduced
//   gather          member p: block p                the root: all blocks
//   scatter         the root: all blocks             member p: block p
//   barrier         messages of no bytes, after which every member has a message chain from every other
//
// Equivariance: rings, direct and barriers are the same for all members up to a translation (peers are offsets),
// halving and doubling up to an XOR; rooted collectives and trees have a root, which a translation moves.
//
// Left out: sizes in bytes, chunks, several dimensions (one schedule after the other).
#pragma once

#include <cstdint>
#include <string>

#include "orrery/core/collective.hpp"

namespace orrery::network {

struct Steps {
  Collective collective = Collective::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  std::uint32_t members = 1;
  std::uint32_t window = 0;  // direct: messages of a member in one step; 0: all
  std::uint32_t root = 0;
  bool backward = false;  // ring: to the member before instead of the next one
};

// Blocks first, first + stride, … (modulo n where there are n), so many, of a row.
struct Move {
  std::uint32_t peer = 0;
  std::uint32_t row = 0;  // all_to_all: whose
  std::uint32_t first = 0, stride = 1, count = 0;
  bool reduces = false;  // added to what the receiver has; otherwise stored
};

// Why there is no such schedule; empty where there is one. `automatic` and `flat_ring` are of the closed form only.
[[nodiscard]] std::string refusal(const Steps& steps);

// What follows is for schedules that are not refused.

[[nodiscard]] std::uint32_t step_count(const Steps& steps);
[[nodiscard]] std::uint32_t block_count(const Steps& steps);

// Members that take part: n, or n + 1 with the switch.
[[nodiscard]] inline std::uint32_t parties(const Steps& steps) {
  return steps.members + (steps.algorithm == CollectiveAlgorithm::in_switch ? 1 : 0);
}

// Messages of a member in a step, and the i-th of them. O(1), trees O(log n).
[[nodiscard]] std::uint32_t send_count(const Steps& steps, std::uint32_t member, std::uint32_t step);
[[nodiscard]] std::uint32_t receive_count(const Steps& steps, std::uint32_t member, std::uint32_t step);
[[nodiscard]] Move send(const Steps& steps, std::uint32_t member, std::uint32_t step, std::uint32_t i);
[[nodiscard]] Move receive(const Steps& steps, std::uint32_t member, std::uint32_t step, std::uint32_t i);

// The first step from `step` on in which the member sends or receives something; step_count() when there is none.
[[nodiscard]] std::uint32_t next_busy_step(const Steps& steps, std::uint32_t member, std::uint32_t step);

}  // namespace orrery::network
