// Sets of time intervals. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::profile {

struct Interval {
  std::int64_t start = 0, end = 0;

  friend bool operator<(const Interval& a, const Interval& b) {
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  }
};

// Length of the union. Sorts the intervals.
[[nodiscard]] std::int64_t union_length(std::vector<Interval>& intervals);

// From the first start to the last end; 0 without intervals.
[[nodiscard]] std::int64_t span(const std::vector<Interval>& intervals);

}  // namespace orrery::profile
