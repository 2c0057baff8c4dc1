// The result of a search over plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"
#include "orrery/results/objective.hpp"
#include "orrery/results/what_if.hpp"

namespace orrery::results {

// points = evaluated + pruned; rejected counts evaluated points; priced (<= evaluated) points have a step time. Points
// that differ only in axes without effect on the model are the same plan: `plans` counts the different valid ones, each
// evaluated once.
struct SpaceCounts {
  std::int64_t points = 0, evaluated = 0, pruned = 0, priced = 0, feasible = 0, plans = 0;
  std::int64_t rejected_memory = 0, rejected_network = 0, rejected_invalid = 0;
};

// The result of a search with one number of devices.
struct DeviceRow {
  std::int64_t devices = 0;
  std::string impossible{};  // why the cluster or the flags cannot have this number; empty: they can
  bool feasible = false;     // at least one plan fits in memory
  bool within = true;        // the step time is within the limit, if there is one
  Seconds step_time;         // of the fastest plan that fits; so are the fields below
  double samples_per_s = 0;
  std::optional<Expense> cost{}, energy{};
};

// A change after which a plan fits: flags, and the lowest memory of a device with it.
struct FittingChange {
  std::string flags;  // "--devices 128", "another --zero"
  Bytes need;
};

// The plan that needs the least memory where none fits.
struct NearestPlan {
  Estimate estimate;
  Bytes need, capacity;  // of a device of the fullest stage
  std::vector<FittingChange> changes;
};

// What the campaign of a plan comes to.
struct PlanCampaign {
  double days = 0, ettr = 0;
  std::optional<double> usd, kwh, co2_kg;
};

struct PlanSearch {
  SpaceCounts space;
  double wall_s = 0;  // set by the caller: the library reads no clock
  Objective objective = Objective::step_time;
  std::vector<Estimate> best;               // best first; ties in axis order
  std::vector<PlanCampaign> campaigns;      // of the best plans, in their order, if the objective is of campaigns
  std::size_t campaigns_of = 0;             // plans with the shortest steps whose campaigns were compared
  std::vector<Estimate> front;              // if requested: the Pareto front of time, memory and devices
  std::vector<DeviceRow> by_devices;        // if several numbers of devices were requested: each, ascending
  std::vector<std::string> without_effect;  // axes of the space without effect on the model: counted, not priced
  std::vector<std::string> not_searched;    // fixed choices that were not searched, with their flags
  std::string nothing_fits;                 // why `best` is empty, if it is
  std::optional<NearestPlan> nearest;       // if nothing fits in memory
  std::vector<Flip> what_if;                // if requested: what would change the answer
  std::vector<std::string> explanation;     // if requested: why the best plan wins, the binding limit, the runner-up
};

}  // namespace orrery::results
