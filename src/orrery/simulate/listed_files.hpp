// The graph files of a job, found by listing their folder once instead of asking for each. Private to the room.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery::simulate {

// By rank, for `ranks` ranks: PREFIX.<rank>.et is a regular file, as the listing of its folder says. False where the
// listing does not say it: the file may be missing, a link, or of a file system that does not list types; the caller
// asks for it. A folder with far more other files is not listed to its end.
[[nodiscard]] std::vector<bool> listed_files(const std::string& prefix, std::size_t ranks);

}  // namespace orrery::simulate
