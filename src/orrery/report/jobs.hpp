// Jobs at one cluster as text, JSON and a Gantt chart.
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/jobs.hpp"

namespace orrery::report {

[[nodiscard]] std::string jobs_text(const results::JobsResult& jobs, TextStyle style = {});

// orrery.jobs/1. "jobs" is empty for runs of more than results::kListedJobs arrivals.
[[nodiscard]] std::string jobs_json(const results::JobsResult& jobs);

// SVG: servers over time, one colour per kind, blocked jobs as marks on the lower edge. The first `most` jobs.
[[nodiscard]] std::string gantt_svg(const results::JobsResult& jobs, std::size_t most = 500);

}  // namespace orrery::report
