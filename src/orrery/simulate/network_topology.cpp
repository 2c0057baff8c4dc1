#include "orrery/simulate/network_topology.hpp"

#include <algorithm>

namespace orrery::simulate {

namespace {

hardware::LinkClass link_of(const NetworkDimension& dimension) {
  constexpr double kNanoseconds = 1e9;  // of a second
  hardware::LinkClass link;
  link.name = "astra-sim";
  link.latency = Seconds(dimension.latency_ns * hardware::links_to_peer(dimension.wiring) / kNanoseconds);
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
  const auto is_first = [&](const hardware::LinkClass& link) { return link.latency == spec.link.latency; };
  if (std::all_of(spec.axis_links.begin(), spec.axis_links.end(), is_first)) { spec.axis_links.clear(); }
  spec.bandwidth = spec.bandwidths.front();
  return spec;
}

}  // namespace orrery::simulate
