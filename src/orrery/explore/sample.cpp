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

// `count` different random numbers below `points`, ascending. Floyd's algorithm: each new limit adds a number below it,
// or itself if that number is already in the set (Bentley, Programming Pearls, CACM 30(9), 1987).
std::set<std::int64_t> numbers(std::int64_t points, std::int64_t count, std::uint64_t seed) {
  RandomStream stream(seed);
  std::set<std::int64_t> chosen;
  for (std::int64_t limit = points - count; limit < points; ++limit) {
    if (!chosen.insert(stream.below(limit + 1)).second) { chosen.insert(limit); }
  }
  return chosen;
}

}  // namespace

SpaceSample sample_points(Walk& walk, std::int64_t count, std::uint64_t seed) {
  SpaceSample result;
  result.points = points_of(walk);
  const auto chosen = numbers(result.points, std::min(count, result.points), seed);
  auto next = chosen.begin();
  std::int64_t before = 0;  // number of points walked so far
  walk.families([&](const Family& family) {
    const std::int64_t end = before + family.points;
    if (next != chosen.end() && *next < end) {
      std::int64_t reached = before;
      walk.members(family, [&](const Member& member) {
        reached += member.points;
        for (; next != chosen.end() && *next < reached; ++next) { result.sampled.push_back({*next, member}); }
      });
    }
    before = end;
  });
  return result;
}

}  // namespace orrery::explore
