// How far a figure of the job or of its hardware must change until another layout wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/results/estimate.hpp"

namespace orrery::results {

struct Flip {
  std::string knob;  // "device_memory", "bandwidth.nvlink", "matrix_peak", "memory_bandwidth", "global_batch"
  std::string name;  // in reports: "bandwidth of nvlink"
  bool up = true;    // true: the figure increases
  std::int64_t searches = 0;
  double farthest = 1;             // the largest change that was searched, as a factor
  std::optional<double> factor;    // absent: the same layout wins up to `farthest`
  double value = 0;                // of the figure at `factor`, or at `farthest`; SI
  std::string value_text;          // "98.5 GiB"
  std::optional<Estimate> winner;  // at `factor`; absent if nothing fits there
  double same_until = 1;           // the largest factor up to which the same layout wins
};

}  // namespace orrery::results
