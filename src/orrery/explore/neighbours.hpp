// Plans one step away from a plan: what it would be with one choice made otherwise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/explore/evaluator.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::explore {

// Of several plans the fastest that fits in memory, or the fastest at all where none does. Ties go to the first.
struct Fastest {
  parallel::Plan plan;
  std::optional<parallel::Plan> beyond_memory;  // one that is faster than `plan` (which fits) and does not fit
};

// `plans`: at least one. Prices them in order of their bound, up to those that a bound rules out.
[[nodiscard]] Fastest fastest(std::span<const parallel::Plan> plans, Evaluator& evaluator);

struct Neighbour {
  std::string axis;  // as a flag spells it, "micro-batch"
  Fastest found;
};

// Of every axis of space.hpp a plan at the nearest value below and above that `space` has; axes in their order, below
// first.
//
// tp, cp, pp, ep and etp cut the batch or the layers anew, and what suits the pieces follows: of the plans of the space
// that have the value, and the other four as in `plan`, the fastest of those whose recompute, zero, sequence
// parallelism and cp-method are the plan's. Where no plan of that value has the plan's choice of one of these, or where
// the choice said nothing in the plan (of tp 1, cp 1, one replica), it follows too. An etp equal to tp stays so.
//
// The other axes keep everything else as in `plan`. dp takes the devices that are left, and the schedule suits vpp.
//
// Linear in the space, and prices at most the product of the axes that follow for each value: 8 vpp, 5 micro-batches.
[[nodiscard]] std::vector<Neighbour> neighbours(const std::vector<parallel::Plan>& space, const parallel::Plan& plan,
                                                Evaluator& evaluator);

}  // namespace orrery::explore
