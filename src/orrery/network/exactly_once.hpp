// Checks that a schedule does what its collective requires: every byte is reduced exactly once from every member and
// delivered exactly once to every member that must have it. Independent of algorithms: it plays messages and records,
// for every party and block, which members' contributions the party has.
//
// Faults that it finds: a member sends a block that it does not have; a contribution is reduced twice; a partial sum is
// stored as the whole; a block is sent to a member that has all of it already; two messages of a step store the same
// block, or one stores a block that another reduces; a member does not end with the required blocks.
//
// Cost: O(parties x blocks x members / 64) of memory, the same per block that is moved.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/network/expand.hpp"
#include "orrery/network/moves.hpp"

namespace orrery::network {

// Which blocks members have before and after. A whole block has the contributions of all members that contribute to it.
struct Promise {
  std::uint32_t members = 1;
  std::uint32_t parties = 1;  // with a switch that reduces or copies, whose contribution is nothing
  std::uint32_t blocks = 1;
  std::function<bool(std::uint32_t member, std::uint32_t block)> contributes;  // has its part of the block at first
  std::function<bool(std::uint32_t member, std::uint32_t block)> ends_with;    // the whole of it
  // Members that may be sent a block which they have already, as in a broadcast by scatter and all-gather. Empty: none.
  std::function<bool(std::uint32_t member)> may_have_it;
  bool is_barrier = false;  // no bytes: every member needs a message chain from every other
};

// All messages of a step leave before any of it arrives; steps ascend.
struct BlockMessage {
  std::uint64_t step = 0;
  std::uint32_t source = 0, destination = 0;
  std::vector<std::uint32_t> blocks;
  bool reduces = false;
};

// The first fault in words; nothing for a correct schedule.
[[nodiscard]] std::optional<std::string> fault(const Promise& promise, std::span<const BlockMessage> messages);

// Of a schedule given as steps of members (moves.hpp). Row r of an all_to_all has the blocks r n … r n + n - 1.
[[nodiscard]] Promise promise_of(const Steps& steps);
[[nodiscard]] std::vector<BlockMessage> messages_of(const Steps& steps);

// Of an expanded schedule (expand.hpp).
[[nodiscard]] Promise promise_of(const Schedule& schedule, const Group& group, const Expansion& expansion);
[[nodiscard]] std::vector<BlockMessage> messages_of(const Expansion& expansion);

}  // namespace orrery::network
