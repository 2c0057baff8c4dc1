// Plans one step away from a plan: what it would be with one choice made otherwise.
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

// Of several points the fastest that fits in memory, or the fastest at all where none does. Ties go to the first.
struct Fastest {
  Point point;
  std::optional<Point> beyond_memory;  // one that is faster than `point` (which fits) and does not fit
};

// `points`: at least one, all of one batch. Prices them in order of their bound, up to those that a bound rules out.
[[nodiscard]] Fastest fastest(std::span<const Point> points, Evaluator& evaluator);

// The possible plans of a space whose families are wanted: those `wanted` says yes to, asked about a family's first
// plan.
[[nodiscard]] std::vector<Point> points_of(Walk& walk, const std::function<bool(const parallel::Plan&)>& wanted);

struct Neighbour {
  std::string axis;  // as a flag spells it, "micro-batch"
  Fastest found;
};

// Of every axis a plan at the nearest value below and above that the space has; axes in their order, below first.
//
// tp, cp, pp, ep and etp cut the batch or the layers anew, and what suits the pieces follows: of the plans of the space
// that have the value, and the other four as in `point`, the fastest of those whose recompute, zero, sequence
// parallelism and cp-method are the plan's. Where no plan of that value has the plan's choice of one of these, or where
// the choice said nothing in the plan (of tp 1, cp 1, one replica), it follows too. An etp equal to tp stays so. So do
// overlaps, offload and the place of groups, where the space varies them.
//
// The other axes keep everything else as in `point`. dp takes the devices that are left, and the schedule suits vpp.
//
// Linear in the families of the space, and prices at most the product of the axes that follow for each value: 8 vpp, 5
// micro-batches.
[[nodiscard]] std::vector<Neighbour> neighbours(Walk& walk, const Point& point, Evaluator& evaluator);

}  // namespace orrery::explore
