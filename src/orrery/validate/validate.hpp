// Predictions against published measurements: csv rows -> model, cluster, plan, stack by rule -> time of a step or of a
// batch of requests -> error.
//
// Measured columns, id, source and config_group never influence a prediction; `family` chooses the stack profile only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/validation.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate {

// Files of the tables in data/measurements that are read by default.
[[nodiscard]] std::vector<std::string> shipped_tables(const std::string& data_directory);

// Tables of any kinds, as files or by names of tables in data/measurements ("serving"); `files` empty: those that are
// read by default. `families` empty: all; rows of other families are ignored. `worst`: terms for this many scored rows
// of each family, those with the largest errors. `best_plan` (see Parts) is called from several threads.
[[nodiscard]] Result<results::Validation> validate_tables(const std::string& data_directory,
                                                          const std::vector<std::string>& files,
                                                          const std::vector<std::string>& families,
                                                          std::size_t worst = 0, BestPlan best_plan = {});

}  // namespace orrery::validate
