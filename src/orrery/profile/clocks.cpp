#include "orrery/profile/clocks.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

namespace orrery::profile {

namespace {

// Ends differ by as much on one clock.
constexpr std::int64_t kSameClock = 10'000;  // ns

// Differences of ends of collectives that two ranks share. Without names of groups, those at the same place may be of
// different groups: the median does not follow few of them.
using Differences = std::map<std::pair<std::size_t, std::size_t>, std::vector<std::int64_t>>;

Differences common_ends(const std::vector<CollectiveEntry>& entries) {
  std::map<std::string, std::vector<const CollectiveEntry*>> same;
  for (const CollectiveEntry& entry : entries) {
    if (!synchronizes(entry)) { continue; }
    same[entry.key.empty() ? fmt::format("{} {} {}", entry.kind, entry.step, entry.number) : entry.key].push_back(
        &entry);
  }
  Differences differences;
  for (const auto& [key, members] : same) {
    for (const CollectiveEntry* a : members) {
      for (const CollectiveEntry* b : members) {
        if (a->rank != b->rank) { differences[{a->rank, b->rank}].push_back(a->end - b->end); }
      }
    }
  }
  return differences;
}

// The difference that most collectives agree on. Others are of collectives that only look the same, or that are cut.
struct Agreement {
  std::int64_t difference = 0;
  std::size_t count = 0;
};

Agreement agreement(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  Agreement best;
  std::size_t first = 0;
  for (std::size_t last = 0; last < values.size(); ++last) {
    while (values[last] - values[first] > kSameClock) { ++first; }
    if (last - first + 1 > best.count) { best = {values[first + (last - first) / 2], last - first + 1}; }
  }
  return best;
}

}  // namespace

std::vector<std::int64_t> clock_offsets(const std::vector<CollectiveEntry>& entries, std::size_t ranks) {
  std::map<std::pair<std::size_t, std::size_t>, Agreement> agreements;
  for (auto& [pair, differences] : common_ends(entries)) { agreements[pair] = agreement(differences); }
  std::vector<std::int64_t> offsets(ranks, 0);
  std::vector<bool> known(ranks, false);
  for (std::size_t first = 0; first < ranks; ++first) {
    if (known[first]) { continue; }
    known[first] = true;
    // From the ranks that are known to the one that agrees on most collectives with one of them.
    for (;;) {
      Agreement best;
      std::pair<std::size_t, std::size_t> link;
      for (const auto& [pair, agreed] : agreements) {
        if (!known[pair.first] || known[pair.second] || agreed.count <= best.count) { continue; }
        best = agreed;
        link = pair;
      }
      if (best.count == 0) { break; }
      known[link.second] = true;
      offsets[link.second] = offsets[link.first] + best.difference;
    }
  }
  const bool same =
      std::all_of(offsets.begin(), offsets.end(), [](std::int64_t offset) { return std::abs(offset) <= kSameClock; });
  if (same) { std::fill(offsets.begin(), offsets.end(), 0); }
  return offsets;
}

}  // namespace orrery::profile
