// What is wrong with values that a user fixed in a search.
#pragma once

#include <functional>
#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/core/error.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::api {

// Whether the space that is searched has points if these choices are fixed.
using HasPoints = std::function<bool(const parallel::PartialPlan& fixed)>;

// Why fixed values leave a space without points, in terms of these values: each smallest set that contradicts itself,
// the model or the devices, with the rules that it breaks, or with the nearest value that leaves points. Nothing where
// they are not to blame, such as for a batch that suits no plan.
[[nodiscard]] std::vector<Diagnostic> problems_of(const parallel::PartialPlan& fixed, const Inputs& inputs,
                                                  const parallel::Job& job, const HasPoints& has_points);

}  // namespace orrery::api
