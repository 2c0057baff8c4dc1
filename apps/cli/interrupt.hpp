// Removes incomplete files when the program is interrupted.
#pragma once

#include <string>
#include <vector>

namespace orrery::cli {

// While it exists, SIGINT, SIGTERM and SIGHUP remove these files before they end the program. At most one object at a
// time.
class PartialFiles {
 public:
  explicit PartialFiles(const std::vector<std::string>& names);
  PartialFiles(const PartialFiles&) = delete;
  PartialFiles& operator=(const PartialFiles&) = delete;
  ~PartialFiles();
};

}  // namespace orrery::cli
