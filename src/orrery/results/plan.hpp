// What a search over plans says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"

namespace orrery::results {

// points = evaluated + pruned; rejected counts evaluated points; priced <= evaluated reached a step time. Several
// points mean the same plan where axes have no effect on the model: `plans` counts the different ones among those that
// were possible, each asked about once.
struct SpaceCounts {
  std::int64_t points = 0, evaluated = 0, pruned = 0, priced = 0, feasible = 0, plans = 0;
  std::int64_t rejected_memory = 0, rejected_network = 0, rejected_invalid = 0;
};

struct PlanSearch {
  SpaceCounts space;
  double wall_s = 0;                        // filled by the caller, who owns a clock
  std::vector<Estimate> best;               // best first; ties in axis order
  std::vector<Estimate> front;              // when asked for: what nothing beats in both time and memory; fastest first
  std::vector<std::string> without_effect;  // axes of the space that no plan feels: counted, not priced
  std::vector<std::string> held;            // choices of the job that the search held, and the flags that change them
  std::string nothing_fits;                 // why `best` is empty, when it is
  std::vector<std::string> explanation;     // when asked for: why the winner wins, what binds, what the next loses on
};

}  // namespace orrery::results
