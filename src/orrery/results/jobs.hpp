// Jobs that arrived at a cluster: what became of them. Plain values; times in seconds from the first moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::results {

struct JobRecord {
  std::int64_t number = 0;
  std::string kind;
  std::int64_t width = 0;  // servers; 0: refused
  double arrival_s = 0, start_s = 0, end_s = 0;
  bool blocked = false;
  std::string reason;  // of blocking: "refused", "limit", "no place", "unfinished"
};

struct JobKindResult {
  std::string kind;
  std::int64_t arrived = 0, blocked = 0;
  double blocking_rate = 0, mean_wait_s = 0, mean_time_s = 0, mean_width = 0;
  double mean_in_system = 0;  // jobs that wait or run, over time
};

struct JobsResult {
  std::string policy, fabric;
  std::int64_t servers = 0, arrived = 0, blocked = 0;
  double blocking_rate = 0, blocking_standard_error = 0;  // by 50 batches
  double utilisation = 0;                                 // server-seconds of jobs / all, until the last job ends
  double waited_share = 0;                                // of jobs that started: those that had to wait
  double mean_wait_s = 0, p50_wait_s = 0, p99_wait_s = 0;
  double mean_wait_standard_error_s = 0;  // by 50 batches of the jobs that started, in that order
  double mean_slowdown = 0;               // (wait + time) / time
  double fairness = 0;                    // Jain's index of 1 / slowdown: 1 if all jobs are slowed down alike
  double horizon_s = 0;
  std::int64_t refused = 0, over_limit = 0, no_place = 0;
  std::int64_t unfinished = 0;  // at the end of the run
  std::vector<JobKindResult> kinds;
  std::vector<JobRecord> jobs;  // of runs of at most kListedJobs arrivals
};

inline constexpr std::int64_t kListedJobs = 10'000;

}  // namespace orrery::results
