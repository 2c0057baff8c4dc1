// `--tp 4,8`, `--device-counts 64:1024:x2`: lists of numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::cli {

// "128,256,512" and "64:1024:x2" (64, 128, 256, 512, 1024), or several of them separated by commas: numbers from
// `least` (ranges: 1) to 100,000,000. Ascending, each once; empty for an empty text. Errors name `flag` and the item.
[[nodiscard]] Result<std::vector<std::int64_t>> counts(const std::string& flag, const std::string& text,
                                                       std::int64_t least = 1);

}  // namespace orrery::cli
