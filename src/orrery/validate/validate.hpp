// Predictions against published measurements: csv rows -> model, cluster, plan, stack by rule -> time of a step or of a
// batch of requests -> error.
//
// Nothing in a row's measured columns, nor its id, source or config_group, reaches a prediction; `family` may choose
// the stack profile and nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::validate {

// The tables that ship with Orrery.
[[nodiscard]] std::vector<std::string> own_tables(const std::string& data_directory);

// Tables of any kinds together; `files` empty: our own. `families` empty: all. Rows of other families are left out
// altogether. `worst`: of so many scored rows of each family, those with the largest errors, terms are told.
[[nodiscard]] Result<results::Validation> validate_tables(const std::string& data_directory,
                                                          const std::vector<std::string>& files,
                                                          const std::vector<std::string>& families,
                                                          std::size_t worst = 0);

}  // namespace orrery::validate
