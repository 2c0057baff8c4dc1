// A plan as one of several jobs on a cluster: its graphs are made in memory, every rank has its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
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

// How many devices of the cluster the plan takes. Errors: unknown flags, a cluster among them, counts that the cluster
// cannot have.
[[nodiscard]] Result<std::int64_t> planned_devices(const std::string& data_directory, const PlannedJobText& text);

// The devices of a job.
struct JobDevices {
  const hardware::Cluster& cluster;        // all of it
  std::span<const std::uint32_t> devices;  // planned_devices()
  bool by_rank = false;                    // [rank]; otherwise in the order in which the job takes them
};

// Choices that the flags leave open, kernels, and what fits follow from the accelerators of these devices. Errors: what
// `orrery estimate` refuses, a job without graphs, a node of the plan on nodes of different accelerators.
[[nodiscard]] Result<PlannedJob> planned_job(const std::string& data_directory, const PlannedJobText& text,
                                             const JobDevices& where);

}  // namespace orrery::api
