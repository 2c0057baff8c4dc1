// `--size 8KiB,1MiB:64MiB:x2`: sizes of messages as they are typed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::cli {

// One or more, divided by commas: a size with its unit, or a range FIRST:LAST:xFACTOR or FIRST:LAST:+STEP whose last
// size is there if a step falls on it. In the order typed. Whole bytes, at least 1.
[[nodiscard]] Result<std::vector<std::uint64_t>> sizes(const std::string& flag, const std::string& text);

}  // namespace orrery::cli
