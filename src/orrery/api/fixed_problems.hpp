// What is wrong with values that a user fixed in a search.
#pragma once

#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/core/error.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::api {

// What makes fixed values impossible; nothing where they are not to blame, such as for a batch that suits no plan.
[[nodiscard]] std::vector<Diagnostic> problems_of(const parallel::PartialPlan& fixed, const Inputs& inputs,
                                                  const parallel::Job& job);

}  // namespace orrery::api
