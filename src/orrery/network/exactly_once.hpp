// Checks that a schedule does what its collective requires: every byte is reduced exactly once from every member and
// delivered exactly once to every member that must have it. Independent of algorithms: it applies the messages in order
// and records, for every participant and block, which members' contributions the participant has.
//
// Faults that it finds: a member sends a block that it does not have; a contribution is reduced twice; a partial sum is
// stored as the whole; a block is sent to a member that has all of it already; two messages of a step store the same
// block, or one stores a block that another reduces; a member does not end with the required blocks.
//
// Cost: O(participants x blocks x members / 64) memory; O(members / 64) time per block that is sent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/network/composition.hpp"
#include "orrery/network/member_schedule.hpp"

namespace orrery::network {

// What a collective requires: the blocks that members have before and after it. A whole block has the contributions of
// all members that contribute to it.
struct Requirement {
  std::uint32_t members = 1;
  std::uint32_t participants = 1;  // members, and a switch that reduces or copies, which contributes nothing
  std::uint32_t blocks = 1;
  std::function<bool(std::uint32_t member, std::uint32_t block)>
      contributes;  // before: has its contribution to the block
  std::function<bool(std::uint32_t member, std::uint32_t block)> ends_with;  // after: has the whole block
  // Members that may receive a block that they have already, as in a broadcast by scatter and all-gather. Empty: none.
  std::function<bool(std::uint32_t member)> may_receive_again;
  // Several dimensions: a switch returns the sum over its line of members. It must have all contributions that the
  // receiver has.
  bool has_partial_sums = false;
  bool is_barrier = false;  // no bytes: every member needs a message chain from every other
};

// All messages of a step leave before any of it arrives; steps ascend.
struct BlockMessage {
  std::uint64_t step = 0;
  std::uint32_t source = 0, destination = 0;
  std::vector<std::uint32_t> blocks;
  bool reduces = false;
};

// A description of the first fault; nullopt for a correct schedule.
[[nodiscard]] std::optional<std::string> fault(const Requirement& requirement, std::span<const BlockMessage> messages);

// Of a member schedule. Row r of an all_to_all has the blocks r n … r n + n - 1.
[[nodiscard]] Requirement requirement_of(const MemberSchedule& schedule);
[[nodiscard]] std::vector<BlockMessage> messages_of(const MemberSchedule& schedule);

// Of a schedule over several dimensions.
[[nodiscard]] Requirement requirement_of(const Schedule& schedule, const Group& group, const Composition& composition);
[[nodiscard]] std::vector<BlockMessage> messages_of(const Schedule& schedule, const Composition& composition);

}  // namespace orrery::network
