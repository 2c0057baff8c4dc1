// Units of a study's formulas.
#pragma once

#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/study/study.hpp"

namespace orrery::study {

// Formulas that compare or add quantities of two units, derived values in another unit than their formula, and members
// of `where` and `constraints` that are no conditions. `places`: of where, then of constraints.
[[nodiscard]] std::vector<Diagnostic> unit_mistakes(const Study& study, const std::vector<Place>& places);

}  // namespace orrery::study
