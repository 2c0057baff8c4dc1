// Steps of a training or inference loop in a profile without ProfilerStep: the shortest period with which the launches
// of a thread repeat. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/profile/device_work.hpp"

namespace orrery::profile {

struct RepeatedSteps {
  TrackIndex thread = 0;             // the one that launches most
  std::vector<std::int64_t> begins;  // of the first launch of each period, and of what follows the last whole one
};

// No begins if fewer than three periods, or less than 95 % of the launches, repeat. Linear in launches.
[[nodiscard]] RepeatedSteps repeated_steps(const DeviceWork& work);

// The shortest period of a sequence by that rule; 0 if there is none.
[[nodiscard]] std::size_t period_of(const std::vector<std::uint32_t>& sequence);

}  // namespace orrery::profile
