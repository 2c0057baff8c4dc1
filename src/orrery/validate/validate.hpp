// Predictions against published measurements: csv rows -> model, cluster, plan, stack by rule -> step time -> error.
//
// Nothing in a row's measured columns, nor its id, source or config_group, reaches a prediction; `family` may choose
// the stack profile and nothing else.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::validate {

// `families` empty: all. Rows of other families are left out altogether.
[[nodiscard]] Result<results::Validation> validate_training(const hardware::Catalogue& catalogue,
                                                            const std::vector<std::string>& files,
                                                            const std::vector<std::string>& families);

}  // namespace orrery::validate
