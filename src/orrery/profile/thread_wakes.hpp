// Threads that wake each other: one that was idle while another one ran, from its last event to its next. Private to
// the room.
#pragma once

#include <vector>

#include "orrery/profile/profile.hpp"

namespace orrery::profile {

struct Wake {
  TrackIndex sleeper = 0;
  std::int64_t asleep = 0;  // end of its last event; without one: its start
  std::int64_t awake = 0;   // start of its next
  TrackIndex waker = 0;
  std::int64_t done = 0;  // end of the waker's last event before that
};

// Of the threads that are marked.
[[nodiscard]] std::vector<Wake> wakes_of(const Profile& profile, const std::vector<bool>& threads);

}  // namespace orrery::profile
