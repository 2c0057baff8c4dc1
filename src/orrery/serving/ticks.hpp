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

[[nodiscard]] inline Ticks ticks_of(Seconds time) {
  return static_cast<Ticks>(std::llround(time.value() * kTicksPerSecond));
}
[[nodiscard]] inline double seconds_of(Ticks ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

}  // namespace orrery::serving
