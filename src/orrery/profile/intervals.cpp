#include "orrery/profile/intervals.hpp"

#include <algorithm>

namespace orrery::profile {

std::int64_t union_length(std::vector<Interval>& intervals) {
  if (intervals.empty()) { return 0; }
  std::sort(intervals.begin(), intervals.end());
  std::int64_t length = 0;
  std::int64_t covered = intervals.front().start;
  for (const Interval& interval : intervals) {
    if (interval.end <= covered) { continue; }
    length += interval.end - std::max(covered, interval.start);
    covered = interval.end;
  }
  return length;
}

std::int64_t span(const std::vector<Interval>& intervals) {
  if (intervals.empty()) { return 0; }
  std::int64_t first = intervals.front().start;
  std::int64_t last = intervals.front().end;
  for (const Interval& interval : intervals) {
    first = std::min(first, interval.start);
    last = std::max(last, interval.end);
  }
  return last - first;
}

}  // namespace orrery::profile
