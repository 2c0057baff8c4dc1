// Another plan of the same job, and how it differs.
#pragma once

#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"

namespace orrery::results {

struct Comparison {
  Estimate other;
  std::vector<std::string> chosen;      // values that were chosen for it
  std::vector<std::string> difference;  // sentences: choices, time, memory
};

}  // namespace orrery::results
