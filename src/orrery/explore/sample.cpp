#include "orrery/explore/sample.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "orrery/core/random.hpp"

namespace orrery::explore {

namespace {

std::int64_t points_of(Walk& walk) {
  std::int64_t points = 0;
  walk.families([&](const Family& family) { points += family.points; });
  return points;
}

// `count` different numbers below `points`, rising: each new limit brings a number below it, or itself where that one
// is there already (Floyd's way, Bentley: Programming Pearls, CACM 30(9), 1987).
std::set<std::int64_t> numbers(std::int64_t points, std::int64_t count, std::uint64_t seed) {
  RandomStream stream(seed);
  std::set<std::int64_t> drawn;
  for (std::int64_t limit = points - count; limit < points; ++limit) {
    if (!drawn.insert(stream.below(limit + 1)).second) { drawn.insert(limit); }
  }
  return drawn;
}

}  // namespace

Draw draw(Walk& walk, std::int64_t count, std::uint64_t seed) {
  Draw result;
  result.points = points_of(walk);
  const auto wanted = numbers(result.points, std::min(count, result.points), seed);
  auto next = wanted.begin();
  std::int64_t before = 0;  // points walked
  walk.families([&](const Family& family) {
    const std::int64_t end = before + family.points;
    if (next != wanted.end() && *next < end) {
      std::int64_t reached = before;
      walk.members(family, [&](const Member& member) {
        reached += member.points;
        for (; next != wanted.end() && *next < reached; ++next) { result.drawn.push_back({*next, member}); }
      });
    }
    before = end;
  });
  return result;
}

}  // namespace orrery::explore
