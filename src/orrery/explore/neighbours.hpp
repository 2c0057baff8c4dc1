// Neighbouring plans: one choice has another value.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/explore/evaluator.hpp"
#include "orrery/explore/point.hpp"
#include "orrery/explore/search.hpp"

namespace orrery::explore {

// The fastest of several points that fits in memory; if none fits, the fastest. Ties: the first one.
struct Fastest {
  Point point;
  std::optional<Point> beyond_memory;  // one that does not fit and is faster than `point`, which fits
};

// `points`: at least one, all with the same batch. Prices them in the order of their bounds and stops at the first
// bound above the best time.
[[nodiscard]] Fastest fastest(std::span<const Point> points, Evaluator& evaluator);

// The possible plans of a space, from the families for which `is_selected` returns true for the first plan.
[[nodiscard]] std::vector<Point> points_of(Walk& walk, const std::function<bool(const parallel::Plan&)>& is_selected);

struct Neighbour {
  std::string axis;  // name of the flag without dashes: "micro-batch"
  Fastest found;
};

// For each axis, a plan with the nearest lower value in the space and one with the nearest higher value; axes in their
// order, lower first.
//
// tp, cp, pp, ep and etp change how batch and layers are divided, so other choices may change with them: of the plans
// with the value and with the other four degrees as in `point`, the fastest one with the same recompute, zero, sequence
// parallelism and cp_method. If no plan of that value has the same choice of one of these, or the choice has no effect
// in `point` (tp 1, cp 1, one replica), that choice may change too. etp stays equal to tp if it is. The same holds for
// overlaps, offload and placement if the space varies them.
//
// The other axes keep everything else as in `point`. dp is determined by the devices, the schedule by vpp.
//
// Linear in the number of families; prices at most 8 x 5 points per value (vpp x micro-batch).
// micro-batches.
[[nodiscard]] std::vector<Neighbour> neighbours(Walk& walk, const Point& point, Evaluator& evaluator);

}  // namespace orrery::explore
