// Sampled points of a space and their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"

namespace orrery::results {

struct SampledPoint {
  std::int64_t number = 0;  // in the order of the axes
  std::string verdict;      // "priced", or the reason of the rejection: "memory", "network", "invalid"
  // Only of points that are priced or exceed memory.
  Seconds step_time;
  Bytes memory;  // of the rank that needs most
  std::int64_t global_batch = 0;
  PlanSummary plan;
  std::vector<std::string> flags;  // the flags of `orrery estimate` for this plan

  [[nodiscard]] bool is_possible() const { return verdict == "priced" || verdict == "memory"; }
};

struct Sample {
  std::int64_t points = 0;  // of the space
  std::uint64_t seed = 0;
  std::vector<SampledPoint> sampled;  // ascending by number
};

}  // namespace orrery::results
