// Runs a command of `orrery` and takes what it prints. A command in a process of its own can be
// stopped at any moment, has limits of its own, and if it crashes, the server does not.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::server {

struct ChildLimits {
  std::chrono::milliseconds time{60'000};
  std::size_t output = std::size_t{64} << 20;  // bytes on standard output
  std::size_t memory = std::size_t{8} << 30;   // bytes of address space
};

struct ChildResult {
  enum class End : std::uint8_t { exited, stopped, timed_out, too_much_output, crashed, not_started };
  End end = End::not_started;
  int code = 0;  // of the exit, or the signal
  std::string out, err;
};

struct ChildWatch {
  // Asked about every 50 ms: whether the command is still wanted.
  std::function<bool()> is_wanted = [] { return true; };
  // Called with each line on standard error.
  std::function<void(std::string_view)> line = [](std::string_view) {};
};

// Runs `program` in `folder`. Progress is asked for every 200 ms.
[[nodiscard]] ChildResult run_child(const std::string& program, const std::vector<std::string>& arguments,
                                    const std::string& folder, const ChildLimits& limits, const ChildWatch& watch);

}  // namespace orrery::server
