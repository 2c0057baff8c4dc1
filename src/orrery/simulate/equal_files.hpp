// Files with equal contents. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::simulate {

// By position: the first position whose file has the same bytes. Links to one file are equal without reading it; others
// are read if their sizes are equal, in full only if their beginnings are. A file that cannot be read is equal to no
// other. `are_regular`, by position or empty: regular files, which can be opened without asking first; short ones are
// read at once. `threads`: as for parallel_for().
[[nodiscard]] std::vector<std::uint32_t> first_equal_files(const std::vector<std::string>& files, int threads,
                                                           const std::vector<bool>& are_regular = {});

}  // namespace orrery::simulate
