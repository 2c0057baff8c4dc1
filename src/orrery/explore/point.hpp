// Points of a space of plans, and the families in which they are walked.
#pragma once

#include <array>
#include <cstdint>

#include "orrery/parallel/plan.hpp"

namespace orrery::explore {

// A plan, and the job's batch, which a space may let follow from the plan (`max_batch`).
struct Point {
  parallel::Plan plan;
  std::int64_t global_batch = 0;
};

// Position of the value of every axis, in the order in which the axes are written: compares points in axis order.
inline constexpr std::size_t kMostAxes = parallel::kPlanFields + 4;  // kAxes of space_file.hpp
using Order = std::array<std::uint16_t, kMostAxes>;

enum class Verdict : std::uint8_t {
  possible,
  network,  // a group does not fill the network dimension that it is pinned to
  invalid,  // the model or the schedule rules it out (parallel::is_valid)
};

// Points that agree in all that a lower bound on the step time reads: degrees, chunks, micro-batch, batch, schedule,
// recompute, sequence parallelism, overlap and method of tensor and context parallelism, place of the groups that
// layers work in (tp, cp, experts). They differ in how replicas share and reduce what they hold, in what is offloaded,
// in where the other groups lie, and in axes without effect.
struct Family {
  Point first;                          // its first point; what a bound is asked about
  std::int64_t number = 0;              // families are numbered as they are walked
  std::int64_t points = 0;              // all of its points, those that mean the same plan and impossible ones included
  Order at{};                           // of the outer axes; what `members` goes on from
  Verdict verdict = Verdict::possible;  // invalid: all of it is, and no bound has to be asked
};

// One plan of a family.
struct Member {
  Point point;
  Order order{};            // of its first point
  std::int64_t points = 1;  // how many points mean this plan: axes without effect on the model
  Verdict verdict = Verdict::possible;
};

}  // namespace orrery::explore
