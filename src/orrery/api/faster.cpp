#include "orrery/api/faster.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/hardware/topology.hpp"

namespace orrery::api {

namespace {

using hardware::Cluster;
using hardware::TopologySpec;

// Changes links of a topology, and the dimensions, which follow from them. Dimensions may have fewer devices than in
// the description, so they keep their ratio.
void change_links(Cluster& cluster, const std::function<void(TopologySpec&)>& change) {
  TopologySpec& spec = *cluster.topology;
  const auto before = hardware::dimensions_of(spec, hardware::build(spec));
  change(spec);
  const auto after = hardware::dimensions_of(spec, hardware::build(spec));
  for (hardware::NetworkDimension& dimension : cluster.dimensions) {
    const auto same_name = [&](const auto& other) { return other.name == dimension.name; };
    const auto old = std::find_if(before.begin(), before.end(), same_name);
    const auto now = std::find_if(after.begin(), after.end(), same_name);
    if (old == before.end() || now == after.end()) { continue; }
    dimension.bandwidth = dimension.bandwidth * (now->bandwidth / old->bandwidth);
    if (dimension.size == now->size) { dimension.parts = now->parts; }
    if (dimension.oversubscription && old->oversubscription && now->oversubscription) {
      *dimension.oversubscription *= *now->oversubscription / *old->oversubscription;
    }
  }
}

void add_topology_links(const TopologySpec& spec, std::vector<FasterCluster>& clusters) {
  const auto add = [&](std::string name, std::function<void(TopologySpec&)> change) {
    clusters.push_back(
        {std::move(name), [change = std::move(change)](Cluster& cluster) { change_links(cluster, change); }});
  };
  if (spec.scale_up) {
    add("bandwidth of the scale-up links",
        [](TopologySpec& changed) { changed.scale_up->bandwidth = changed.scale_up->bandwidth * kFaster; });
  }
  // Where links above have no bandwidth of their own, they have that of a device's link.
  const bool has_levels = !spec.bandwidths.empty();
  add(has_levels ? "bandwidth of the devices' links" : "bandwidth of the network's links", [](TopologySpec& changed) {
    changed.bandwidth = changed.bandwidth * kFaster;
    for (hardware::CableSpec& cable : changed.links) {
      if (cable.bandwidth) { cable.bandwidth = *cable.bandwidth * kFaster; }
    }
  });
  for (std::size_t i = 0; i < spec.bandwidths.size(); ++i) {
    add(fmt::format("bandwidths[{}] of the topology", i),
        [i](TopologySpec& changed) { changed.bandwidths[i] = changed.bandwidths[i] * kFaster; });
  }
}

}  // namespace

std::vector<FasterCluster> faster_clusters(const Cluster& cluster) {
  std::vector<FasterCluster> clusters;
  clusters.push_back({"compute", [](Cluster& changed) {
                        changed.change_accelerators([](hardware::Accelerator& one) {
                          for (auto& [precision, rate] : one.matrix_peak) { rate = rate * kFaster; }
                          one.vector_peak = one.vector_peak * kFaster;
                        });
                      }});
  clusters.push_back({"device memory and reduction", [](Cluster& changed) {
                        changed.change_accelerators(
                            [](hardware::Accelerator& one) { one.memory_bandwidth = one.memory_bandwidth * kFaster; });
                      }});
  if (cluster.topology) {
    add_topology_links(*cluster.topology, clusters);
  } else {
    for (std::size_t i = 0; i < cluster.dimensions.size(); ++i) {
      if (cluster.dimensions[i].size <= 1) { continue; }
      clusters.push_back({fmt::format("bandwidth of {}", cluster.dimensions[i].name), [i](Cluster& changed) {
                            changed.dimensions[i].bandwidth = changed.dimensions[i].bandwidth * kFaster;
                          }});
    }
  }
  if (cluster.second_tier.memory.value() > 0) {
    clusters.push_back({"second memory tier (device links)", [](Cluster& changed) {
                          changed.second_tier.bandwidth = changed.second_tier.bandwidth * kFaster;
                          changed.second_tier.memory_bandwidth = changed.second_tier.memory_bandwidth * kFaster;
                        }});
  }
  for (std::size_t i = 0; i < cluster.second_tier.levels.size(); ++i) {
    clusters.push_back({fmt::format("bandwidth of {}", cluster.second_tier.levels[i].name), [i](Cluster& changed) {
                          hardware::PoolLevel& level = changed.second_tier.levels[i];
                          level.bandwidth = level.bandwidth * kFaster;
                        }});
  }
  return clusters;
}

std::vector<FasterMachine> faster_machines(const simulate::SimulationJob& job) {
  using simulate::SimulationJob;
  std::vector<FasterMachine> machines;
  machines.push_back({"peak-perf", [](SimulationJob& changed) { changed.system.peak_tflops *= kFaster; }});
  machines.push_back({"local-mem-bw", [](SimulationJob& changed) { changed.system.local_memory_gb *= kFaster; }});
  for (std::size_t i = 0; i < job.network.dimensions.size(); ++i) {
    machines.push_back({fmt::format("bandwidth of dimension {}", i),
                        [i](SimulationJob& changed) { changed.network.dimensions[i].bytes_per_second *= kFaster; }});
  }
  if (job.memory.arrangement != memory::Arrangement::NO_MEMORY_EXPANSION) {
    // Whole bytes per nanosecond, so the factor can be larger.
    const auto now = static_cast<double>(job.memory.bytes_per_ns), rate = std::max(now + 1, std::round(now * kFaster));
    const auto remote = [rate](SimulationJob& changed) {
      changed.memory.bytes_per_ns = static_cast<std::uint64_t>(rate);
    };
    machines.push_back({"remote-mem-bw", remote, rate / now});
  }
  return machines;
}

Result<void> add_savings(const Cluster& cluster,
                         const std::function<Result<std::uint64_t>(const Cluster&)>& makespan_on,
                         results::CriticalPath& path) {
  for (const FasterCluster& faster : faster_clusters(cluster)) {
    Cluster changed = cluster;
    faster.apply(changed);
    ORRERY_TRY(makespan, makespan_on(changed));
    path.savings.push_back({faster.resource, kFaster, makespan});
  }
  return {};
}

}  // namespace orrery::api
