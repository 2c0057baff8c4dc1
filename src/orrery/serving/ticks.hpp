// The clock of serving simulations: integers, so that the sum of many iterations does not depend on how they are
// grouped.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "orrery/core/units.hpp"

namespace orrery::serving {

using Ticks = std::int64_t;  // of 0.1 ps: 10 days fit

inline constexpr double kTicksPerSecond = 1e13;
inline constexpr Ticks kNever = std::numeric_limits<Ticks>::max();
inline constexpr double kLongestSeconds = 9e5;  // of a simulation; longer ones are refused

// Longer times are this long: 9.2e5 s, so that a sum with a time below kNever is checked and not undefined.
inline constexpr Ticks kLongestTicks = 9'200'000'000'000'000'000;

[[nodiscard]] inline Ticks ticks_of(Seconds time) {
  constexpr auto kMost = static_cast<double>(kLongestTicks);
  const double ticks = time.value() * kTicksPerSecond;
  if (!(ticks < kMost)) { return kLongestTicks; }  // not a number, too
  return ticks > -kMost ? static_cast<Ticks>(std::llround(ticks)) : -kLongestTicks;
}

// Of times that are not negative.
[[nodiscard]] constexpr Ticks saturated_sum(Ticks a, Ticks b) { return a > kLongestTicks - b ? kLongestTicks : a + b; }
[[nodiscard]] constexpr Ticks saturated_product(std::int64_t count, Ticks each) {
  return each > 0 && count > kLongestTicks / each ? kLongestTicks : count * each;
}
[[nodiscard]] inline double seconds_of(Ticks ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

}  // namespace orrery::serving
