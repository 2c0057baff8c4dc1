// A plan as one of several jobs on a cluster: its graphs are made in memory, every rank has its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::api {

struct PlannedJob {
  simulate::SimulationJob job;
  network::NodeEgress egress = network::NodeEgress::all_ports;
  // By rank: its position among the devices that the job has, in the order in which it takes them.
  std::vector<std::uint32_t> order;
  bool fits = true;  // in memory
};

struct PlannedJobText {
  std::string flags;    // of `orrery estimate`, without --cluster
  std::string cluster;  // catalogue name or file
  std::string file;     // paths in the flags count from its folder
  std::int64_t steps = 1;
};

// Errors: unknown flags, a cluster among them, what `orrery estimate` refuses, a job without graphs.
[[nodiscard]] Result<PlannedJob> planned_job(const std::string& data_directory, const PlannedJobText& text);

}  // namespace orrery::api
