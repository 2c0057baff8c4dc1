// What would change the best plan, in sentences.
#pragma once

#include <string>
#include <vector>

#include "orrery/results/what_if.hpp"

namespace orrery::report {

// One sentence per figure, with both directions. Empty without flips.
[[nodiscard]] std::string what_if_lines(const std::vector<results::Flip>& flips);

}  // namespace orrery::report
