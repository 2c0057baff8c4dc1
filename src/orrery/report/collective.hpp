// A table of one collective operation as text in the manner of nccl-tests, and as a JSON document
// (orrery.collective/1).
#pragma once

#include <string>

#include "orrery/results/collective.hpp"

namespace orrery::report {

// `terms`: also the parts of the time, for closed-form results.
[[nodiscard]] std::string collective_text(const results::CollectiveTable& table, bool terms);
[[nodiscard]] std::string collective_json(const results::CollectiveTable& table);

}  // namespace orrery::report
