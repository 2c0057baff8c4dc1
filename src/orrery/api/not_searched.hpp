// Lists which choices a search of plans did not vary.
#pragma once

#include <string>
#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/explore/space_walk.hpp"

namespace orrery::api {

// Choices that some plan of the space could make differently, each with its flag: "tp-overlap (--tp-overlap)". Choices
// that the request fixes or lists, and those that no plan of the space could have, are omitted. At most linear in the
// size of the space.
[[nodiscard]] std::vector<std::string> not_searched(const Inputs& inputs, const parallel::Job& job,
                                                    const PlanRequest& request, const explore::Space& space);

}  // namespace orrery::api
