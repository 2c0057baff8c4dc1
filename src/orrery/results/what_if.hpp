// How far a figure of the job or of its hardware has to move until another layout wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/results/estimate.hpp"

namespace orrery::results {

struct Flip {
  std::string knob;  // "device_memory", "bandwidth.nvlink", "matrix_peak", "memory_bandwidth", "global_batch"
  std::string name;  // for people: "bandwidth of nvlink"
  bool up = true;    // the figure grows
  std::int64_t searches = 0;
  double farthest = 1;             // how far was looked, as a factor
  std::optional<double> factor;    // nothing: the same layout wins all the way
  double value = 0;                // of the figure at the factor, or at the farthest; SI
  std::string value_text;          // "98.5 GiB"
  std::optional<Estimate> winner;  // there; nothing where nothing fits any more
  double same_until = 1;           // the farthest factor on the way there with the same winner
};

}  // namespace orrery::results
