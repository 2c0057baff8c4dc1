// Uniform random sample of the points of a space: every set of `count` points is equally likely.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/explore/point.hpp"
#include "orrery/explore/search.hpp"

namespace orrery::explore {

struct SampledPoint {
  std::int64_t number = 0;  // index of the point, in the order of the walk
  Member member;            // its plan; for impossible points, which are walked together, one of their plans
};

struct SpaceSample {
  std::int64_t points = 0;            // number of points of the space
  std::vector<SampledPoint> sampled;  // ascending by number
};

// `count` different points, or all if the space has fewer. Walks the space twice; memory grows only with `count`.
[[nodiscard]] SpaceSample sample_points(Walk& walk, std::int64_t count, std::uint64_t seed);

}  // namespace orrery::explore
