// `orrery jobs`: jobs that arrive at one cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/jobs/file.hpp"
#include "orrery/results/jobs.hpp"

namespace orrery::api {

// Sets the times of kinds that have a plan: the fastest plan that fits for each width, times the steps. Widths for
// which none fits are removed; a kind without any width fails.
[[nodiscard]] Result<jobs::File> with_plans(const std::string& data_directory, jobs::File file);

[[nodiscard]] Result<results::JobsResult> run_jobs(const std::string& data_directory, const jobs::File& file,
                                                   const std::function<void(std::int64_t done)>& progress = {});

}  // namespace orrery::api
