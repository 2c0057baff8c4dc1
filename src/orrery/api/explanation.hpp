// Why the best plan wins, in sentences made from its numbers.
#pragma once

#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"

namespace orrery::api {

// `best`: a search's answers, best first, at least one.
[[nodiscard]] std::vector<std::string> explanation(const std::vector<results::Estimate>& best);

}  // namespace orrery::api
