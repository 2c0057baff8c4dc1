// Machines with one resource that is 10 % faster: what each would gain is found by running the simulation again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/results/critical_path.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::api {

inline constexpr double kFaster = 1.1;

struct FasterCluster {
  std::string resource;
  std::function<void(hardware::Cluster&)> apply;
};

// The accelerator's arithmetic and its memory (with reductions of arriving data); each dimension, or with a topology
// each class of its links; the second tier. Latencies stay.
[[nodiscard]] std::vector<FasterCluster> faster_clusters(const hardware::Cluster& cluster);

struct FasterMachine {
  std::string resource;
  std::function<void(simulate::SimulationJob&)> apply;  // of a job without graphs
  double factor = kFaster;
};

// The same of ASTRA-sim's files.
[[nodiscard]] std::vector<FasterMachine> faster_machines(const simulate::SimulationJob& job);

// Runs the simulation with every faster resource, and adds its makespan (ns) to the path's savings.
[[nodiscard]] Result<void> add_savings(
    const hardware::Cluster& cluster, const std::function<Result<std::uint64_t>(const hardware::Cluster&)>& makespan_on,
    results::CriticalPath& path);

}  // namespace orrery::api
