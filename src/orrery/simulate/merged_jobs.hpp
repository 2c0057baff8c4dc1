// Several jobs on one cluster as one job of flows. Each keeps its graphs, groups and messages; they meet on ports and
// links only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

struct PlacedJob {
  std::string name;
  SimulationJob job;                   // of read_job_on
  std::vector<std::uint32_t> devices;  // of the cluster, by rank
  std::uint64_t start_ps = 0;
  network::NodeEgress egress = network::NodeEgress::all_ports;
  std::vector<std::uint32_t> order = {};  // by rank: its place among the devices as placed; empty: the rank
};

// Gives the devices of a job, as placed, to its ranks.
void order_devices(PlacedJob& job);

// Ranks of the jobs follow one another. `cluster`: all of its devices. All have the same egress.
[[nodiscard]] FlowJob merged(const hardware::Cluster& cluster, const std::vector<PlacedJob>& jobs);

enum class Placement : std::uint8_t {
  packed,  // the next free nodes
  spread,  // in turn on each block of the outermost dimension
  random,  // nodes in a random order
};

// The devices of a cluster in the order in which jobs take them, whole nodes one after another.
[[nodiscard]] std::vector<std::uint32_t> placement_order(const hardware::Cluster& cluster, Placement placement,
                                                         std::uint64_t seed);

}  // namespace orrery::simulate
