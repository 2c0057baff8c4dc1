// Plans one step away from a plan: what it would be with one choice made otherwise.
#pragma once

#include <string>
#include <vector>

#include "orrery/parallel/plan.hpp"

namespace orrery::explore {

struct Neighbour {
  std::string axis;  // as a flag spells it, "micro-batch"
  parallel::Plan plan;
};

// Of every axis of space.hpp the nearest value below and above that some plan of `space` has with the others as in
// `plan`; axes in their order, below first. What follows from an axis goes with it: dp takes the devices that are left,
// the schedule suits vpp, an etp equal to tp stays so; of inference the size of a micro-batch, not their number. Linear
// in the space.
[[nodiscard]] std::vector<Neighbour> neighbours(const std::vector<parallel::Plan>& space, const parallel::Plan& plan,
                                                bool inference = false);

}  // namespace orrery::explore
