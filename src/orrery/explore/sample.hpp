// Points of a space drawn evenly: every set of so many points is as likely as any other.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/explore/point.hpp"
#include "orrery/explore/search.hpp"

namespace orrery::explore {

struct Drawn {
  std::int64_t number = 0;  // of the point, in the order of the walk
  Member member;            // the plan that it means; of impossible points, which come together, one of them
};

struct Draw {
  std::int64_t points = 0;   // of the space
  std::vector<Drawn> drawn;  // by number
};

// `count` different points, or all where there are no more. Walks the space twice; what it holds grows with `count`
// alone.
[[nodiscard]] Draw draw(Walk& walk, std::int64_t count, std::uint64_t seed);

}  // namespace orrery::explore
