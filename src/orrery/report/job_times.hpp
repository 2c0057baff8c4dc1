// Jobs that ran at once on one cluster, as text and as a JSON document (orrery.simulate/1).
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/job_times.hpp"

namespace orrery::report {

[[nodiscard]] std::string job_times_text(const results::JobTimes& times, TextStyle style = {});
[[nodiscard]] std::string job_times_json(const results::JobTimes& times);

}  // namespace orrery::report
