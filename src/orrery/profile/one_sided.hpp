// Operations in which not every member waits for every other: messages, broadcasts, reductions to one rank. Private to
// the room.
//
//   broadcast, scatter:  the others wait for the root; the root waits for nobody
//   reduce, gather:      the root waits for the others; they wait for nobody
//   message:             sender and receiver wait for each other; a sender that ended before its receiver started did
//                        not wait (the message went to a buffer)
//
//   wire(member) = end - latest start of those that it waits for, itself included
//
// Not modelled: members in the middle of a ring or tree that wait for the ones before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/profile/collective_entry.hpp"
#include "orrery/profile/job_plan.hpp"

namespace orrery::profile {

enum class Direction : std::uint8_t { from_root, to_root };

// Nothing for other kinds.
[[nodiscard]] std::optional<Direction> direction_of(std::string_view kind);

using Entries = std::vector<const CollectiveEntry*>;

// Positions among the entries of the members that could be the root: nobody ends before those that it waits for start,
// by more than `tolerance`.
[[nodiscard]] std::vector<std::size_t> possible_roots(const Entries& entries, Direction direction,
                                                      std::int64_t tolerance);

// The possible root with which the others' times on the wire differ least (they carry the same bytes); of a reduction,
// the one that ends last. `possible` is not empty.
[[nodiscard]] std::size_t likely_root(const Entries& entries, Direction direction,
                                      const std::vector<std::size_t>& possible);

// Members with their time on the wire, waiting, and whom they wait for.
[[nodiscard]] std::vector<CollectiveMember> rooted_members(const Entries& entries, Direction direction,
                                                           std::size_t root);

// Nothing if the receiver ends before the sender starts, by more than `tolerance`.
[[nodiscard]] std::optional<std::vector<CollectiveMember>> message_members(const CollectiveEntry& sender,
                                                                           const CollectiveEntry& receiver,
                                                                           std::int64_t tolerance);

}  // namespace orrery::profile
