// `--size 8KiB,1MiB:64MiB:x2`: message sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::cli {

// One or more items separated by commas: a size with its unit, or a range FIRST:LAST:xFACTOR or FIRST:LAST:+STEP, which
// includes LAST only if a step reaches it exactly. In the order given. Whole bytes, at least 1.
[[nodiscard]] Result<std::vector<std::uint64_t>> sizes(const std::string& flag, const std::string& text);

}  // namespace orrery::cli
