// Files that are not complete must not stay when the program is stopped.
#pragma once

#include <string>
#include <vector>

namespace orrery::cli {

// While it lives, SIGINT, SIGTERM and SIGHUP remove these files before they end the program. One at a time.
class PartialFiles {
 public:
  explicit PartialFiles(const std::vector<std::string>& names);
  PartialFiles(const PartialFiles&) = delete;
  PartialFiles& operator=(const PartialFiles&) = delete;
  ~PartialFiles();
};

}  // namespace orrery::cli
