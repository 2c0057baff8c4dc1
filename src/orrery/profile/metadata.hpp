// Fields of the document beside its events. Private to the room.
#pragma once

#include <string_view>
#include <vector>

#include "orrery/profile/profile.hpp"

namespace orrery::profile {

// Reads what a Profile keeps of such a field; others have no effect. `value` is JSON.
void read_metadata(Profile& profile, std::string_view key, std::string_view value);

// Ranks of a text like "[0, 1, 2]"; empty if the list is cut ("[0, 1, ..., 29, ...]") or no list of numbers.
[[nodiscard]] std::vector<std::uint64_t> ranks_of_text(std::string_view text);

}  // namespace orrery::profile
