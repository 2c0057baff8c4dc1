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

// During its lifetime, SIGINT, SIGTERM and SIGHUP are noted instead of ending the program, which can then remove what
// it has begun to write. One object at a time, and none of PartialFiles.
class InterruptFlag {
 public:
  InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  ~InterruptFlag();  // a signal that was noted then ends the program

  [[nodiscard]] static bool is_set();
};

}  // namespace orrery::cli
