// Waiting by asking: a thread that calls cudaEventQuery again and again, with nothing in between, until an operation
// has ended, waits as in one blocking call. Queries of the caching allocators look alike and do not wait; a row of
// queries is only taken as waiting if it ends when a stream has finished all that it was given. Private to the room.
#pragma once

#include <vector>

#include "orrery/profile/device_work.hpp"

namespace orrery::profile {

// One call for each row of queries that waits, from the start of the first to the end of the last.
[[nodiscard]] std::vector<Event> polls_of(const Profile& profile, const DeviceWork& work);

}  // namespace orrery::profile
