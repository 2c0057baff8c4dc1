// A collective as a schedule of steps per member: the messages that member p of n sends and receives in step s. Peers
// and blocks are computed on request and not stored, so that a simulation of a million members needs no memory for
// them. The checker (exactly_once.hpp) and the simulator read the same schedule.
//
// Dependencies: the messages that a member sends in step s depend on all messages that it receives in earlier steps,
// reductions included, and on nothing else. A message that is sent in step s is received in step s.
//
// The buffer of a chunk is cut into block_count() blocks of equal size. all_to_all: every member has a row of n blocks,
// the one in column q for member q; other collectives have one row. The blocks before and after the collective:
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
// Symmetry: the schedules of rings, direct and barriers are the same for all members up to a translation (peers are
// offsets), those of halving and doubling up to an XOR. Rooted collectives and trees have a root, which a translation
// moves.
//
// Left out: sizes in bytes, chunks, several dimensions (one schedule after the other).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/collective.hpp"

namespace orrery::network {

struct MemberSchedule {
  Collective collective = Collective::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  std::uint32_t members = 1;
  std::uint32_t window = 0;  // direct: messages of a member in one step; 0: all of them
  std::uint32_t root = 0;
  bool backward = false;  // ring: to the previous member instead of the next one
};

// One message of a step: `count` blocks of a row, first, first + stride, … (modulo n if a row has n blocks).
struct StepMessage {
  std::uint32_t peer = 0;
  std::uint32_t row = 0;  // all_to_all: the member whose row it is
  std::uint32_t first = 0, stride = 1, count = 0;
  bool reduces = false;  // added to what the receiver has; otherwise stored
};

// flat_ring as ring; otherwise the parts as they are given.
[[nodiscard]] MemberSchedule member_schedule(Collective collective, CollectiveAlgorithm algorithm,
                                             std::uint32_t members);

// ring, direct, tree or halving_doubling: what libraries do, in one level, if nothing else is asked for.
[[nodiscard]] CollectiveAlgorithm usual_algorithm(Collective collective);

// Libraries make a ring for each device of a scale-up domain, which enters and leaves the domain by other devices than
// the others do, so that all of their ports are in use. Ring k starts every domain with its device k. `members`: domain
// by domain, `domain` of each.
[[nodiscard]] std::vector<std::uint32_t> ring_order(const std::vector<std::uint32_t>& members, std::size_t domain,
                                                    std::size_t k);

// Why there is no such schedule; empty if there is one. `automatic` and `flat_ring` exist in the closed form only.
[[nodiscard]] std::string refusal(const MemberSchedule& schedule);

// The functions below need a schedule without a refusal.

[[nodiscard]] std::uint32_t step_count(const MemberSchedule& schedule);
[[nodiscard]] std::uint32_t block_count(const MemberSchedule& schedule);

// The number of participants: n members, plus the switch if it takes part.
[[nodiscard]] inline std::uint32_t participant_count(const MemberSchedule& schedule) {
  return schedule.members + (schedule.algorithm == CollectiveAlgorithm::in_switch ? 1 : 0);
}

// Messages of a member in a step, and the i-th of them. O(1), trees O(log n).
[[nodiscard]] std::uint32_t send_count(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step);
[[nodiscard]] std::uint32_t receive_count(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step);
[[nodiscard]] StepMessage send(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step,
                               std::uint32_t i);
[[nodiscard]] StepMessage receive(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step,
                                  std::uint32_t i);

// The first step from `step` on in which the member sends or receives; step_count() if there is none.
[[nodiscard]] std::uint32_t next_busy_step(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step);

}  // namespace orrery::network
