// Removes incomplete files when the program is interrupted.
#pragma once

#include <string>
#include <vector>

namespace orrery::cli {

// During its lifetime, SIGINT, SIGTERM and SIGHUP remove these files before they end the program. One object at a time.
class PartialFiles {
 public:
  explicit PartialFiles(const std::vector<std::string>& names);
  PartialFiles(const PartialFiles&) = delete;
  PartialFiles& operator=(const PartialFiles&) = delete;
  ~PartialFiles();
};

}  // namespace orrery::cli
