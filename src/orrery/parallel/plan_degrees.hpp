// What is wrong with degrees of a plan whatever the others are.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::parallel {

// Of tp, cp, pp and dp, those that are given: a product that does not divide the devices.
[[nodiscard]] std::vector<Diagnostic> degree_problems(const PartialPlan& given, std::int64_t devices);

}  // namespace orrery::parallel
