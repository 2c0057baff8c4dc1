// Whether a schedule does what its collective promises: every byte is reduced exactly once from every member and
// delivered exactly once to whoever must have it. Knows nothing of algorithms: it plays messages and keeps, for every
// party and block, whose contributions it holds.
//
// Faults that it finds: a member sends what it does not have; a contribution is added twice to the same sum; a partial
// sum is stored as if it were the whole; a block comes to somebody who has all of it already; two messages of a step
// store the same block, or one stores what another reduces; somebody does not end with what was promised.
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

// What holds before and after. The whole of a block is what all members that contribute to it have.
struct Promise {
  std::uint32_t members = 1;
  std::uint32_t parties = 1;  // with a switch that reduces or copies, whose contribution is nothing
  std::uint32_t blocks = 1;
  std::function<bool(std::uint32_t member, std::uint32_t block)> contributes;  // has its part of the block at first
  std::function<bool(std::uint32_t member, std::uint32_t block)> ends_with;    // the whole of it
  // Who may be sent what it has already, as a broadcast that scatters and gathers does to those who scattered. Empty:
  // nobody.
  std::function<bool(std::uint32_t member)> may_have_it;
  bool is_barrier = false;  // no bytes: everybody must have heard of everybody
};

// All messages of a step leave before any of it arrives; steps ascend.
struct BlockMessage {
  std::uint64_t step = 0;
  std::uint32_t source = 0, destination = 0;
  std::vector<std::uint32_t> blocks;
  bool reduces = false;
};

// The first fault in words; nothing where the promise is kept.
[[nodiscard]] std::optional<std::string> fault(const Promise& promise, std::span<const BlockMessage> messages);

// Of a schedule given as steps of members (moves.hpp). Row r of an all_to_all has the blocks r n … r n + n - 1.
[[nodiscard]] Promise promise_of(const Steps& steps);
[[nodiscard]] std::vector<BlockMessage> messages_of(const Steps& steps);

// Of a schedule written out (expand.hpp).
[[nodiscard]] Promise promise_of(const Schedule& schedule, const Group& group, const Expansion& expansion);
[[nodiscard]] std::vector<BlockMessage> messages_of(const Expansion& expansion);

}  // namespace orrery::network
