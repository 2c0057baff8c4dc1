// Times of the closed form on the clock of flows. Private to the room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "orrery/core/units.hpp"
#include "orrery/simulate/flows.hpp"
#include "orrery/simulate/rate.hpp"
#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

inline constexpr double kPicosecondsPerSecond = 1e12;

// Throws TooLong.
[[nodiscard]] inline std::uint64_t picoseconds(Seconds time) {
  const double count = std::round(time.value() * kPicosecondsPerSecond);
  if (!(count < static_cast<double>(kMostTime))) { throw TooLong{}; }
  return static_cast<std::uint64_t>(count);
}

[[nodiscard]] inline Seconds seconds(std::uint64_t picoseconds) {
  return Seconds(static_cast<double>(picoseconds) / kPicosecondsPerSecond);
}

// Of a port that a call needs for `load` while it lasts.
[[nodiscard]] inline FlowShare share_of(Seconds load, Seconds time) {
  const double share = std::clamp(load / time, 0.0, 1.0);
  return static_cast<FlowShare>(std::llround(share * static_cast<double>(kWholeShare)));
}

}  // namespace orrery::simulate
