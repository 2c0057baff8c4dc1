// Arrivals of jobs at one cluster, by events.
//
// A job asks the policy for its number of servers when it arrives. It is blocked if it is refused, if its time is
// beyond its limit, or if it finds no place and may not wait; a job that has waited too long for its limit is blocked
// when it would start. Left out: preemption, failures, jobs that change their width, contention between jobs.
#pragma once

#include <functional>

#include "orrery/jobs/file.hpp"
#include "orrery/results/jobs.hpp"

namespace orrery::jobs {

[[nodiscard]] results::JobsResult simulate_jobs(const File& file,
                                                const std::function<void(std::int64_t done)>& progress = {});

}  // namespace orrery::jobs
