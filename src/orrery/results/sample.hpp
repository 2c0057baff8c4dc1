// Points of a space and what each comes to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"

namespace orrery::results {

struct SampledPoint {
  std::int64_t number = 0;  // in the order of the space's walk
  std::string verdict;      // "priced", or what it was rejected for: "memory", "network", "invalid"
  // Of points that are priced or lack memory.
  Seconds step_time;
  Bytes memory;  // of the fullest rank
  std::int64_t global_batch = 0;
  PlanSummary plan;
  std::vector<std::string> flags;  // of `orrery estimate`, which mean it

  [[nodiscard]] bool is_possible() const { return verdict == "priced" || verdict == "memory"; }
};

struct Sample {
  std::int64_t points = 0;  // of the space
  std::uint64_t seed = 0;
  std::vector<SampledPoint> drawn;  // by number
};

}  // namespace orrery::results
