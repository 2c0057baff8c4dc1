// Ranks that are slower than others, on the command line: --slow.
#pragma once

#include <string>

#include "orrery/api/simulate.hpp"
#include "orrery/core/error.hpp"

namespace orrery::cli {

// "3:1.2", "8-15:1.1": ranks and the factor of their kernel times.
[[nodiscard]] Result<simulate::Straggler> straggler_of(const std::string& text);

}  // namespace orrery::cli
