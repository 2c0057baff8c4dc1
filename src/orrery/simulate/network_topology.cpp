#include "orrery/simulate/network_topology.hpp"

namespace orrery::simulate {

namespace {

hardware::LinkClass link_of(const NetworkDimension& dimension) {
  constexpr double kNanosecond = 1e-9;
  hardware::LinkClass link;
  link.name = "astra-sim";
  link.latency = Seconds(dimension.latency_ns * kNanosecond * hardware::links_to_peer(dimension.wiring));
  hardware::Protocol& protocol = link.protocols.emplace_back();
  protocol.name = "Simple";
  protocol.ring_step = protocol.tree_step = link.latency;
  return link;
}

}  // namespace

hardware::TopologySpec topology_of(const Network& network) {
  hardware::TopologySpec spec;
  spec.kind = hardware::TopologyKind::grid;
  spec.routing = hardware::Routing::shortest;
  for (const NetworkDimension& dimension : network.dimensions) {
    spec.sizes.push_back(dimension.ranks);
    spec.wirings.push_back(dimension.wiring);
    spec.bandwidths.emplace_back(dimension.bytes_per_second);
    spec.axis_links.push_back(link_of(dimension));
  }
  spec.link = spec.axis_links.front();
  spec.bandwidth = spec.bandwidths.front();
  return spec;
}

}  // namespace orrery::simulate
