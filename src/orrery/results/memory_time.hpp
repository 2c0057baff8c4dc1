// Device memory of ranks while a simulated plan, or a graph with tensors, runs: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/results/rank_runs.hpp"

namespace orrery::results {

// From this time to the next point.
struct MemoryPoint {
  std::uint64_t time_ns = 0;
  double bytes = 0;

  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

struct MemoryRank {
  double held = 0;  // bytes, all the time: of a plan, weights, gradients, optimizer state, buffers
  double peak = 0;
  std::uint64_t peak_ns = 0;        // when it is reached first
  double mean = 0;                  // over the run
  double capacity = 0;              // bytes that a plan may use; of the device, under graphs on a cluster; 0: not known
  std::vector<MemoryPoint> points;  // ascending times; the first at 0

  friend bool operator==(const MemoryRank&, const MemoryRank&) = default;
};

struct MemoryOverTime {
  RankRuns<MemoryRank> ranks;
};

}  // namespace orrery::results
