// What `generate` has written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::results {

struct Generation {
  std::int64_t ranks = 0;
  std::int64_t classes = 0;           // 0: a file per rank
  std::string first_file, last_file;  // of the graphs
  std::string index_file;             // process groups, or classes
  std::uint64_t nodes = 0;            // of all files
  std::uint64_t bytes = 0;            // of the graphs' files
  std::vector<std::string> chosen;    // values that were not given
  std::vector<std::string> warnings, notes;
};

}  // namespace orrery::results
