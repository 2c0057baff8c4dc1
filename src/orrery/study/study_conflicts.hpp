// Contradictions of a study: parts of it of which one would have no effect.
#pragma once

#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/study/study.hpp"

namespace orrery::study {

// A path that two of axes, derived values, threshold and search set; a constant with the name of a column, of a result
// or of a field of the base. An error each, at the later part.
[[nodiscard]] std::vector<Diagnostic> conflicts(const Study& study);

}  // namespace orrery::study
