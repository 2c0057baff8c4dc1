// Several jobs at once on one cluster (`simulate --jobs`).
#pragma once

#include <string>

#include "orrery/core/error.hpp"
#include "orrery/results/job_times.hpp"

namespace orrery::api {

// A file of jobs (docs/format/concurrent-jobs.md): every job with the others, and alone on the same devices.
[[nodiscard]] Result<results::JobTimes> simulate_jobs(const std::string& data_directory, const std::string& file);

}  // namespace orrery::api
