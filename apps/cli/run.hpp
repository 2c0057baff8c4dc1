// The whole program, from its arguments to its exit code.
#pragma once

#include <string>
#include <vector>

namespace orrery::cli {

// Prints; never throws, except Stopped.
[[nodiscard]] int exit_code_of(const std::vector<std::string>& arguments);

}  // namespace orrery::cli
