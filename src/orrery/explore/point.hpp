// Points of a space of plans, and the families in which they are walked.
#pragma once

#include <array>
#include <cstdint>

#include "orrery/parallel/plan.hpp"

namespace orrery::explore {

// A plan and the batch of its job; a space may derive the batch from the plan (`max_batch`).
struct Point {
  parallel::Plan plan;
  std::int64_t global_batch = 0;
};

// The position of every axis's value, in the order in which the axes are written: compares points in axis order.
inline constexpr std::size_t kMostAxes = parallel::kPlanFields + 4;  // kAxes of space_file.hpp
using Order = std::array<std::uint16_t, kMostAxes>;

enum class Verdict : std::uint8_t {
  possible,
  network,  // a group does not fill the network dimension that it is pinned to
  invalid,  // the model or the schedule rules it out (parallel::is_valid)
};

// Points that agree in everything that the lower bound of the step time depends on: degrees, chunks, micro-batch,
// batch, schedule, recompute, sequence parallelism, tp overlap, cp method, and placement of the groups that layers use
// (tp, cp, experts). They differ in sharding and reduction over replicas, offload, placement of other groups, and axes
// without effect.
struct Family {
  Point first;                          // its first point; bounds are computed for it
  std::int64_t number = 0;              // in the order of the walk
  std::int64_t points = 0;              // number of points, including duplicates of plans and impossible ones
  Order at{};                           // values of the outer axes; `members` starts from them
  Verdict verdict = Verdict::possible;  // invalid: all points are, no bound is needed
};

// One plan of a family.
struct Member {
  Point point;
  Order order{};            // of its first point
  std::int64_t points = 1;  // number of points that mean this plan
  Verdict verdict = Verdict::possible;
};

}  // namespace orrery::explore
