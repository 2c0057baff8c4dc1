// Lists which choices a search of plans did not vary.
#pragma once

#include <string>
#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/explore/space_walk.hpp"

namespace orrery::api {

// Choices that some plan of the space could make differently, each with its flag: "tp-overlap (--tp-overlap)". Choices
// that `fixed` fixes or that no plan of the space could have are omitted. `any_context`: the
// space leaves out no degree of context parallelism that should be named. At most linear in the size of the space.
[[nodiscard]] std::vector<std::string> not_searched(const Inputs& inputs, const parallel::Job& job,
                                                    const parallel::PartialPlan& fixed, const explore::Space& space,
                                                    bool any_context);

}  // namespace orrery::api
