#include "orrery/profile/one_sided.hpp"

#include <algorithm>
#include <limits>

namespace orrery::profile {

namespace {

CollectiveMember member_of(const CollectiveEntry& entry, std::int64_t latest, std::vector<std::size_t> waits_for) {
  CollectiveMember member;
  member.rank = entry.rank;
  member.node = entry.node;
  member.wire_ns = std::max<std::int64_t>(entry.end - std::max(latest, entry.start), 0);
  member.waiting_ns = entry.end - entry.start - member.wire_ns;
  member.waits_for = std::move(waits_for);
  return member;
}

std::int64_t latest_start(const Entries& entries) {
  std::int64_t latest = std::numeric_limits<std::int64_t>::min();
  for (const CollectiveEntry* entry : entries) { latest = std::max(latest, entry->start); }
  return latest;
}

}  // namespace

std::optional<Direction> direction_of(std::string_view kind) {
  if (kind == "broadcast" || kind == "scatter") { return Direction::from_root; }
  if (kind == "reduce" || kind == "gather") { return Direction::to_root; }
  return std::nullopt;
}

std::vector<std::size_t> possible_roots(const Entries& entries, Direction direction, std::int64_t tolerance) {
  std::vector<std::size_t> possible;
  const std::int64_t latest = latest_start(entries);
  std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
  std::int64_t second_end = first_end;  // of the others of the one that ends first
  for (const CollectiveEntry* entry : entries) {
    second_end = std::min(second_end, std::max(entry->end, first_end));
    first_end = std::min(first_end, entry->end);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const CollectiveEntry& root = *entries[i];
    const std::int64_t others_end = root.end == first_end ? second_end : first_end;
    const bool fits =
        direction == Direction::from_root ? root.start <= others_end + tolerance : latest <= root.end + tolerance;
    if (fits) { possible.push_back(i); }
  }
  return possible;
}

std::size_t likely_root(const Entries& entries, Direction direction, const std::vector<std::size_t>& possible) {
  std::size_t best = possible.front();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t root : possible) {
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i == root) { continue; }
      const std::int64_t wire = entries[i]->end - std::max(entries[i]->start, entries[root]->start);
      shortest = std::min(shortest, wire);
      longest = std::max(longest, wire);
    }
    const std::int64_t cost = direction == Direction::from_root ? longest - shortest : -entries[root]->end;
    if (cost < least) {
      least = cost;
      best = root;
    }
  }
  return best;
}

std::vector<CollectiveMember> rooted_members(const Entries& entries, Direction direction, std::size_t root) {
  std::vector<CollectiveMember> members;
  std::vector<std::size_t> all(entries.size());
  for (std::size_t i = 0; i < all.size(); ++i) { all[i] = i; }
  const std::int64_t latest = latest_start(entries);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool waits = direction == Direction::from_root ? i != root : i == root;
    if (!waits) {
      members.push_back(member_of(*entries[i], entries[i]->start, {i}));
    } else if (direction == Direction::to_root) {
      members.push_back(member_of(*entries[i], latest, all));
    } else {
      members.push_back(member_of(*entries[i], entries[root]->start, {root, i}));
    }
  }
  return members;
}

std::optional<std::vector<CollectiveMember>> message_members(const CollectiveEntry& sender,
                                                             const CollectiveEntry& receiver, std::int64_t tolerance) {
  if (receiver.end + tolerance < sender.start) { return std::nullopt; }
  const bool buffered = sender.end < receiver.start;
  std::vector<CollectiveMember> members;
  members.push_back(member_of(sender, buffered ? sender.start : receiver.start,
                              buffered ? std::vector<std::size_t>{0} : std::vector<std::size_t>{0, 1}));
  members.push_back(member_of(receiver, sender.start, {0, 1}));
  return members;
}

}  // namespace orrery::profile
