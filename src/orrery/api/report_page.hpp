// `orrery report`: a page of results.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::api {

// Of the database of a study, or of files of JSON that `campaign --json` and `jobs --json` printed. Errors: a database
// and something else together; JSON of another command.
[[nodiscard]] Result<std::string> results_page(const std::vector<std::string>& files);

}  // namespace orrery::api
