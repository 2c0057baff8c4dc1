// What a search of plans holds and does not search, said so that nobody takes its answer for more than it is.
#pragma once

#include <string>
#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/explore/space_walk.hpp"

namespace orrery::api {

// Choices that some plan of the space could make otherwise, each with the flag that makes it: "tp-overlap
// (--tp-overlap)". What `fixed` fixes and what no plan of the space could have is left out. Linear in the space at
// worst.
[[nodiscard]] std::vector<std::string> not_searched(const Inputs& inputs, const parallel::Job& job,
                                            const parallel::PartialPlan& fixed, const explore::Space& space);

}  // namespace orrery::api
