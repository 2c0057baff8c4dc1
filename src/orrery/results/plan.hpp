// What a search over plans says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"
#include "orrery/results/objective.hpp"
#include "orrery/results/what_if.hpp"

namespace orrery::results {

// points = evaluated + pruned; rejected counts evaluated points; priced <= evaluated reached a step time. Several
// points mean the same plan where axes have no effect on the model: `plans` counts the different ones among those that
// were possible, each asked about once.
struct SpaceCounts {
  std::int64_t points = 0, evaluated = 0, pruned = 0, priced = 0, feasible = 0, plans = 0;
  std::int64_t rejected_memory = 0, rejected_network = 0, rejected_invalid = 0;
};

// What a search over one number of devices found.
struct DeviceRow {
  std::int64_t devices = 0;
  bool feasible = false;  // some plan fits in memory
  bool within = true;     // and its step is within the limit, if there is one
  Seconds step_time;      // of the fastest that fits; the rest is of its step
  double samples_per_s = 0;
  std::optional<Expense> cost{}, energy{};
};

struct PlanSearch {
  SpaceCounts space;
  double wall_s = 0;  // filled by the caller, who owns a clock
  Objective objective = Objective::step_time;
  std::vector<Estimate> best;               // best first; ties in axis order
  std::vector<Estimate> front;              // when asked for: what nothing beats in time, memory and devices at once
  std::vector<DeviceRow> by_devices;        // when several numbers of devices were asked for: each, rising
  std::vector<std::string> without_effect;  // axes of the space that no plan feels: counted, not priced
  std::vector<std::string> held;            // choices of the job that the search held, and the flags that change them
  std::string nothing_fits;                 // why `best` is empty, when it is
  std::vector<Flip> what_if;                // when asked for: what would change the answer
  std::vector<std::string> explanation;     // when asked for: why the winner wins, what binds, what the next loses on
};

}  // namespace orrery::results
