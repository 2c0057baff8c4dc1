// Differences between the clocks of ranks. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/profile/collective_entry.hpp"

namespace orrery::profile {

// What to add to the times of each rank so that collectives in which every rank waits for every other end together:
// the difference of ends on which most collectives of two ranks agree, from rank to rank. Zero where all clocks agree
// to some microseconds.
[[nodiscard]] std::vector<std::int64_t> clock_offsets(const std::vector<CollectiveEntry>& entries, std::size_t ranks);

}  // namespace orrery::profile
