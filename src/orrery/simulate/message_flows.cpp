#include "orrery/simulate/message_flows.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "orrery/hardware/routes.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/stepped_collective.hpp"
#include "orrery/simulate/topology_loads.hpp"

namespace orrery::simulate {

namespace {

network::MemberSchedule member_schedule(Collective collective, CollectiveAlgorithm algorithm, std::uint32_t members) {
  if (algorithm == CollectiveAlgorithm::flat_ring) { algorithm = CollectiveAlgorithm::ring; }
  network::MemberSchedule schedule;
  schedule.collective = collective;
  schedule.algorithm = algorithm;
  schedule.members = members;
  return schedule;
}

CollectiveAlgorithm usual_algorithm(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter: return CollectiveAlgorithm::ring;
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: return CollectiveAlgorithm::direct;
    case Collective::broadcast:
    case Collective::reduce: return CollectiveAlgorithm::tree;
    case Collective::barrier: return CollectiveAlgorithm::halving_doubling;
  }
  throw_internal_error("known collective", __FILE__, __LINE__);
}

const hardware::Protocol& protocol_of(const hardware::LinkClass& link, std::string_view name) {
  const auto named = std::find_if(link.protocols.begin(), link.protocols.end(),
                                  [&](const hardware::Protocol& protocol) { return protocol.name == name; });
  if (named != link.protocols.end()) { return *named; }
  return *std::max_element(link.protocols.begin(), link.protocols.end(),
                           [](const auto& a, const auto& b) { return a.bandwidth_fraction < b.bandwidth_fraction; });
}

struct Rules {
  Seconds base;
  std::vector<network::LevelRule> levels;
};

Rules rules_of(const hardware::Cluster& cluster, std::string_view protocol_name, const network::MemberSchedule& call) {
  Rules rules;
  for (const hardware::NetworkDimension& dimension : cluster.dimensions) {
    const hardware::LinkClass& link = dimension.link;
    const hardware::Protocol& protocol = protocol_of(link, protocol_name);
    const double payload = link.efficiency * protocol.bandwidth_fraction;
    switch (call.algorithm) {
      case CollectiveAlgorithm::tree:
        rules.base = std::max(rules.base, protocol.tree_base);
        rules.levels.push_back({protocol.tree_step.value(), payload});
        break;
      case CollectiveAlgorithm::in_switch:
        rules.base = std::max(rules.base, link.in_switch_base);
        rules.levels.push_back({link.in_switch_step.value(), payload});
        break;
      case CollectiveAlgorithm::automatic:
      case CollectiveAlgorithm::ring:
      case CollectiveAlgorithm::direct:
      case CollectiveAlgorithm::flat_ring:
      case CollectiveAlgorithm::halving_doubling:
        rules.base = std::max(rules.base, protocol.ring_base);
        rules.levels.push_back({protocol.ring_step.value(), payload});
        break;
    }
  }
  return rules;
}

// The switch that every device has a cable to; none: the first node that is no switch.
std::uint32_t common_switch(const hardware::Topology& topology, const std::vector<std::uint32_t>& devices) {
  std::vector<std::set<std::uint32_t>> joined(topology.nodes.size());
  for (const hardware::TopologyLink& link : topology.links) {
    if (link.to < topology.devices) { joined[link.from].insert(link.to); }
  }
  const auto has_all = [&](const std::set<std::uint32_t>& cables) {
    return std::all_of(devices.begin(), devices.end(), [&](std::uint32_t device) { return cables.contains(device); });
  };
  const auto found = std::find_if(joined.begin() + topology.devices, joined.end(), has_all);
  return static_cast<std::uint32_t>(found - joined.begin());
}

// Libraries make a ring for each device of a scale-up domain, which enters and leaves the domain by other devices than
// the others do, so that all of their ports are in use. Ring k starts every domain with device k.
std::vector<network::SteppedCollective> rings_of(const network::SteppedCollective& call, std::uint32_t domain) {
  std::vector<network::SteppedCollective> rings;
  for (std::uint32_t k = 0; k < domain; ++k) {
    network::SteppedCollective ring = call;
    ring.block_bytes = call.block_bytes / domain;
    for (std::size_t i = 0; i < call.nodes.size(); ++i) {
      ring.nodes[i] = call.nodes[i - i % domain + (i + k) % domain];
    }
    rings.push_back(std::move(ring));
  }
  return rings;
}

bool goes_round(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter;
}

network::Group everyone(const hardware::Cluster& cluster) {
  network::Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    if (cluster.dimensions[d].size > 1) { group.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size}); }
  }
  return group;
}

// The busiest link, for a result.
void note_busiest(const hardware::Topology& topology, const std::vector<network::LevelRule>& levels,
                  const std::vector<double>& carried, MessageFlows& made) {
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const hardware::TopologyLink& link = topology.links[i];
    const double use = carried[i] / (link.bandwidth * levels[link.level].payload) / made.time.value();
    if (use <= made.busiest_use) { continue; }
    made.busiest_use = use;
    made.busiest = fmt::format("{} to {}", topology.nodes[link.from].name, topology.nodes[link.to].name);
  }
}

}  // namespace

std::string refusal_of(const hardware::Cluster& cluster, Collective collective, CollectiveAlgorithm algorithm) {
  if (algorithm == CollectiveAlgorithm::automatic) { return {}; }
  const auto members = static_cast<std::uint32_t>(cluster.devices);
  if (algorithm == CollectiveAlgorithm::in_switch) {
    const hardware::Topology topology = hardware::build(*cluster.topology);
    const auto devices = devices_of(cluster, parallel::rank_order(cluster), members);
    if (common_switch(topology, devices) == topology.nodes.size()) {
      return fmt::format("in_switch needs a switch that all {} devices have a cable to", members);
    }
  }
  return network::refusal(member_schedule(collective, algorithm, members));
}

MessageFlows simulate_messages(const hardware::Cluster& cluster, Collective collective, Bytes bytes,
                               CollectiveAlgorithm algorithm, std::vector<double> pair_bytes) {
  if (algorithm == CollectiveAlgorithm::automatic) { algorithm = usual_algorithm(collective); }
  const auto members = static_cast<std::uint32_t>(cluster.devices);
  const hardware::Topology topology = hardware::build(*cluster.topology);
  hardware::Routes routes(topology);
  network::SteppedCollective call;
  call.schedule = member_schedule(collective, algorithm, members);
  call.nodes = devices_of(cluster, parallel::rank_order(cluster), members);
  if (algorithm == CollectiveAlgorithm::in_switch) { call.nodes.push_back(common_switch(topology, call.nodes)); }
  if (collective != Collective::barrier) {
    call.block_bytes = bytes.value() / static_cast<double>(network::block_count(call.schedule));
  }
  call.pair_bytes = std::move(pair_bytes);
  std::vector<network::SteppedCollective> calls = {call};
  const bool is_ring = call.schedule.algorithm == CollectiveAlgorithm::ring && goes_round(collective);
  if (is_ring && topology.has_scale_up && cluster.devices > cluster.node_size()) {
    calls = rings_of(call, static_cast<std::uint32_t>(cluster.node_size()));
  }
  const network::Price price = network::Fabric(cluster).price(collective, bytes, everyone(cluster), algorithm);
  const bool is_priced = std::isfinite(price.time.value());
  const Rules rules = rules_of(cluster, is_priced ? price.protocol : std::string_view(), call.schedule);
  const network::SteppedTimes times = network::run_collectives(routes, rules.levels, calls);
  MessageFlows made;
  made.time = rules.base + Seconds(*std::max_element(times.finish.begin(), times.finish.end()));
  made.algorithm = algorithm;
  made.messages = times.messages;
  made.updates = times.updates;
  note_busiest(topology, rules.levels, times.carried, made);
  return made;
}

}  // namespace orrery::simulate
