// The result of several jobs on one cluster: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/results/simulation.hpp"

namespace orrery::results {

struct JobTime {
  std::string name;
  std::uint64_t ranks = 0;
  std::vector<std::uint32_t> devices;  // by rank
  double start_s = 0;
  double finish_s = 0;  // with the others
  double alone_s = 0;   // from its start to its end, on the same devices without the others

  [[nodiscard]] double slowdown() const { return alone_s > 0 ? (finish_s - start_s) / alone_s : 1.0; }
};

// A link that a job uses.
struct JobLink {
  std::string job, from, to;  // names of nodes
  double bandwidth_Bps = 0;
  double busy_s = 0;  // that the job needs of the link, if alone
  // By which the job's calls take longer on this link than without the other jobs: sum over calls, which may overlap,
  // mean over the ranks of the job. `share`: of the sum over the links.
  double lost_s = 0, share = 0;
  double used = 0;  // by all jobs: part of the time to the end of the last job
};

struct JobTimes {
  std::string cluster, placement;
  std::uint64_t devices = 0;
  std::vector<JobTime> jobs;
  std::vector<SimulatedContention> contention;  // kinds are jobs
  std::vector<JobLink> links;                   // on a topology: the largest loss first, then the busiest link
  std::vector<std::string> warnings;
  std::uint64_t messages = 0, events = 0;
  double wall_s = 0;             // set by the caller
  std::uint64_t peak_rss_B = 0;  // set by the caller

  [[nodiscard]] double makespan_s() const {
    double last = 0;
    for (const JobTime& job : jobs) { last = job.finish_s > last ? job.finish_s : last; }
    return last;
  }
};

}  // namespace orrery::results
