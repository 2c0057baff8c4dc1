#include "orrery/simulate/flow_job.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "orrery/simulate/class_parts.hpp"
#include "orrery/simulate/topology_loads.hpp"

namespace orrery::simulate {

namespace {

std::string kind_of(const hardware::Cluster& cluster, const network::Group& shape) {
  std::string text = fmt::format("groups of {}", shape.size());
  for (const network::Extent& extent : shape.extents) {
    text += fmt::format("{}{}", &extent == shape.extents.begin() ? " on " : ", ",
                        cluster.dimensions[static_cast<std::size_t>(extent.dimension)].name);
  }
  return text;
}

}  // namespace

std::uint32_t number_of_kind(std::vector<std::string>& kinds, const std::string& kind) {
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found != kinds.end()) { return static_cast<std::uint32_t>(found - kinds.begin()); }
  kinds.push_back(kind);
  return static_cast<std::uint32_t>(kinds.size() - 1);
}

Network network_of(const hardware::Cluster& cluster) {
  Network network;
  for (const hardware::NetworkDimension& given : cluster.dimensions) {
    NetworkDimension& made = network.dimensions.emplace_back();
    made.wiring = given.wiring;
    made.ranks = static_cast<std::uint32_t>(given.size);
  }
  return network;
}

void use_topology(FlowJob& job, std::vector<std::uint32_t> devices) {
  if (!job.cluster.topology) { return; }
  job.devices = std::move(devices);
  const hardware::TopologySpec& spec = *job.cluster.topology;
  const hardware::Topology topology = hardware::build(spec);
  for (std::size_t i = 0; i < job.cluster.dimensions.size(); ++i) {
    hardware::NetworkDimension& dimension = job.cluster.dimensions[i];
    const bool is_scale_up = topology.has_scale_up && i == 0;
    if (dimension.is_tier()) { dimension.oversubscription = 1.0; }
    if (hardware::has_switch(dimension.wiring) && !is_scale_up && !hardware::is_grid(spec.kind)) {
      dimension.bandwidth = hardware::port_bandwidth(spec, topology);
      dimension.parts.clear();
    }
  }
}

void use_topology(FlowJob& job, const parallel::Layout& layout) {
  if (!job.cluster.topology) { return; }
  use_topology(job, devices_of(job.cluster, layout, static_cast<std::uint32_t>(job.simulated.size())));
}

FlowJob unfolded(const hardware::Cluster& cluster, SimulationJob job) {
  FlowJob flow;
  flow.cluster = cluster;
  flow.job = std::move(job);
  flow.job.network = network_of(cluster);
  flow.kinds = first_kinds();
  const parallel::Layout layout = parallel::rank_order(cluster);
  const auto ranks = static_cast<std::uint32_t>(flow.job.rank_graphs.size());
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0U);
  for (const std::uint32_t rank : all) {
    flow.simulated.push_back(rank);
    if (!cluster.nodes.empty()) { flow.nodes_entries.push_back(static_cast<std::uint32_t>(cluster.nodes_entry(rank))); }
  }
  const auto add = [&](const std::vector<std::uint32_t>& members) {
    const network::Group shape = shape_of(layout, members);
    flow.groups.push_back({shape, number_of_kind(flow.kinds, kind_of(cluster, shape))});
  };
  add(all);
  for (const Group& group : flow.job.groups) { add(group.ranks); }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::vector<NodeTask>& nodes = flow.job.rank_graphs[rank].nodes;
    if (std::none_of(nodes.begin(), nodes.end(), is_message)) { continue; }
    for (NodeTask& task : flow.job.rank_graphs.own(rank).nodes) {
      if (!is_message(task)) { continue; }
      task.dimensions = static_cast<std::uint16_t>(parallel::crossed_dimension(layout, rank, task.peer));
    }
  }
  use_topology(flow, layout);
  return flow;
}

}  // namespace orrery::simulate
