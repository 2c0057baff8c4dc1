// What would change the answer, in sentences.
#pragma once

#include <string>
#include <vector>

#include "orrery/results/what_if.hpp"

namespace orrery::report {

// Two flips of a figure, up and down, are one sentence. Empty for none.
[[nodiscard]] std::string what_if_lines(const std::vector<results::Flip>& flips);

}  // namespace orrery::report
