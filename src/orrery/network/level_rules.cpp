#include "orrery/network/level_rules.hpp"

#include <algorithm>

namespace orrery::network {

namespace {

const hardware::Protocol& named_protocol(const hardware::LinkClass& link, std::string_view name) {
  const auto named = std::find_if(link.protocols.begin(), link.protocols.end(),
                                  [&](const hardware::Protocol& protocol) { return protocol.name == name; });
  if (named != link.protocols.end()) { return *named; }
  return *std::max_element(link.protocols.begin(), link.protocols.end(),
                           [](const auto& a, const auto& b) { return a.bandwidth_fraction < b.bandwidth_fraction; });
}

}  // namespace

LevelRules level_rules(const hardware::Cluster& cluster, std::string_view protocol_name,
                       CollectiveAlgorithm algorithm) {
  LevelRules rules;
  for (const hardware::NetworkDimension& dimension : cluster.dimensions) {
    const hardware::LinkClass& link = dimension.link;
    const hardware::Protocol& protocol = named_protocol(link, protocol_name);
    const double payload = link.efficiency * protocol.bandwidth_fraction;
    switch (algorithm) {
      case CollectiveAlgorithm::tree:
        rules.base = std::max(rules.base, protocol.tree_base);
        rules.levels.push_back({protocol.tree_step.value(), payload});
        break;
      case CollectiveAlgorithm::in_switch:
        // A link class without figures of its own for switches: half of its latency on each link.
        if (link.in_switch_efficiency > 0) {
          rules.base = std::max(rules.base, link.in_switch_base);
          rules.levels.push_back({link.in_switch_step.value(), payload});
        } else {
          rules.base = std::max(rules.base, protocol.tree_base);
          rules.levels.push_back({link.latency.value() / 2, payload});
        }
        break;
      case CollectiveAlgorithm::automatic:
      case CollectiveAlgorithm::ring:
      case CollectiveAlgorithm::direct:
      case CollectiveAlgorithm::flat_ring:
      case CollectiveAlgorithm::halving_doubling:
      case CollectiveAlgorithm::hierarchical:
        rules.base = std::max(rules.base, protocol.ring_base);
        rules.levels.push_back({protocol.ring_step.value(), payload});
        break;
    }
  }
  return rules;
}

PhaseRules phase_rules(const Fabric& fabric, const Schedule& schedule, const Group& group,
                       std::string_view protocol_name) {
  const auto& dimensions = fabric.cluster().dimensions;
  const auto& names = fabric.protocols();
  const auto named = std::find(names.begin(), names.end(), protocol_name);
  const auto protocol = named == names.end() ? std::size_t{0} : static_cast<std::size_t>(named - names.begin());
  PhaseRules rules;
  for (const SchedulePhase& phase : schedule.phases) {
    const StepKind kind = kind_of(phase.pattern);
    rules.base = max(rules.base, fabric.step_cost(kind, phase.dimension, protocol, phase.members).base);
    rules.latency.emplace_back();
    rules.payload.emplace_back();
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      const hardware::LinkClass& link = dimensions[d].link;
      const double fraction = named_protocol(link, protocol_name).bandwidth_fraction;
      // Routes have their own latency beyond the link class (hardware::added_latency).
      const Seconds step = fabric.step_cost(kind, static_cast<int>(d), protocol, phase.members).step;
      const Seconds added = kind == StepKind::in_switch ? Seconds(0) : dimensions[d].route_latency;
      rules.latency.back().push_back((step - added).value());
      rules.payload.back().push_back(kind == StepKind::in_switch ? link.in_switch_efficiency
                                                                 : link.efficiency * fraction);
    }
  }
  for (const Extent& extent : effective_extents(group)) {
    const hardware::Wiring wiring = dimensions[static_cast<std::size_t>(extent.dimension)].wiring;
    rules.both_ways.push_back(hardware::has_neighbours_only(wiring) ? 1 : 0);
  }
  return rules;
}

}  // namespace orrery::network
