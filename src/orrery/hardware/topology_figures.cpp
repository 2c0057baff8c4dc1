// Figures of a topology, and the dimensions that the closed form uses.
#include <algorithm>
#include <limits>
#include <set>

#include "orrery/core/error.hpp"
#include "orrery/hardware/routes.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/hardware/topology_shape.hpp"

namespace orrery::hardware {

namespace {

// Dinic's maximum flow (E. Dinic, 1970). O(V^2 E) at worst; a few phases here, where all routes are short.
class MaximumFlow {
 public:
  MaximumFlow(std::size_t nodes, std::uint32_t source, std::uint32_t sink)
      : edges_of_(nodes), source_(source), sink_(sink) {}

  void add(std::uint32_t from, std::uint32_t to, double capacity) {
    edges_of_[from].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({from, 0});
  }

  double value() {
    double sum = 0;
    while (find_levels()) {
      next_.assign(edges_of_.size(), 0);
      for (double pushed = push(source_, kUnlimited); pushed > 0; pushed = push(source_, kUnlimited)) { sum += pushed; }
    }
    return sum;
  }

  static constexpr double kUnlimited = 1e300;

 private:
  struct Edge {
    std::uint32_t to;
    double rest;
  };

  [[nodiscard]] bool is_open(const Edge& edge) const {
    constexpr double kRounding = 1e-3;  // bytes/s: below the rounding of sums of bandwidths
    return edge.rest > kRounding;
  }

  bool find_levels() {
    level_.assign(edges_of_.size(), -1);
    level_[source_] = 0;
    std::vector<std::uint32_t> reached = {source_};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::uint32_t number : edges_of_[reached[i]]) {
        const Edge& edge = edges_[number];
        if (!is_open(edge) || level_[edge.to] >= 0) { continue; }
        level_[edge.to] = level_[reached[i]] + 1;
        reached.push_back(edge.to);
      }
    }
    return level_[sink_] >= 0;
  }

  // Depth: the length of a route.
  double push(std::uint32_t node, double limit) {
    if (node == sink_) { return limit; }
    for (std::size_t& i = next_[node]; i < edges_of_[node].size(); ++i) {
      const std::uint32_t number = edges_of_[node][i];
      Edge& edge = edges_[number];
      if (!is_open(edge) || level_[edge.to] != level_[node] + 1) { continue; }
      const double pushed = push(edge.to, std::min(limit, edge.rest));
      if (pushed <= 0) { continue; }
      edge.rest -= pushed;
      edges_[number ^ 1U].rest += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<std::vector<std::uint32_t>> edges_of_;
  std::vector<Edge> edges_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
  std::uint32_t source_, sink_;
};

double bisection_of(const Topology& topology) {
  const auto nodes = static_cast<std::uint32_t>(topology.nodes.size());
  MaximumFlow flow(nodes + 2, nodes, nodes + 1);
  const std::uint32_t half = topology.devices / 2;
  for (std::uint32_t device = 0; device < topology.devices; ++device) {
    device < half ? flow.add(nodes, device, MaximumFlow::kUnlimited)
                  : flow.add(device, nodes + 1, MaximumFlow::kUnlimited);
  }
  for (const TopologyLink& link : topology.links) { flow.add(link.from, link.to, link.bandwidth); }
  return flow.value();
}

std::int64_t diameter_of(Routes& routes) {
  const Topology& topology = routes.topology();
  // Devices of one switch are alike; one of each switch and domain is enough. Grids are alike in every device.
  std::vector<std::uint32_t> some;
  std::set<std::vector<std::uint32_t>> seen;
  std::vector<std::vector<std::uint32_t>> joined(topology.devices);
  for (const TopologyLink& link : topology.links) {
    if (link.from < topology.devices) { joined[link.from].push_back(link.to); }
  }
  for (std::uint32_t device = 0; device < topology.devices; ++device) {
    if (topology.devices_forward || seen.insert(joined[device]).second) { some.push_back(device); }
  }
  std::uint32_t most = topology.devices > 1 ? routes.distance(0, 1) : 0;
  for (const std::uint32_t to : some) {
    for (const std::uint32_t from : some) { most = std::max(most, from == to ? 0 : routes.distance(from, to)); }
  }
  return most;
}

// The ranks that differ from `rank` in the coordinate of one level only.
std::vector<std::uint32_t> peers_on(std::int64_t rank, std::int64_t stride, std::int64_t size) {
  std::vector<std::uint32_t> peers;
  const std::int64_t own = rank / stride % size;
  for (std::int64_t i = 1; i < size; ++i) {
    peers.push_back(static_cast<std::uint32_t>(rank + ((own + i) % size - own) * stride));
  }
  return peers;
}

// Of the longest route between devices that send to each other on a level: neighbours where links lead to neighbours
// only, as collectives are rings there; any two elsewhere.
Seconds route_latency_on(Routes& routes, std::int64_t stride, const TopologyLevel& level) {
  const Topology& topology = routes.topology();
  Seconds longest;
  if (!(topology.switch_latency > Seconds(0))) { return longest; }
  for (std::uint32_t device = 0; device < topology.devices; ++device) {
    std::vector<std::uint32_t> peers = peers_on(device, stride, level.size);
    if (has_neighbours_only(level.wiring)) { peers = {peers.front(), peers.back()}; }
    for (const std::uint32_t peer : peers) {
      longest = max(longest, added_latency(topology, routes.route(device, peer)));
    }
  }
  return longest;
}

// Of the links that join neighbours on a level of a grid.
double link_bandwidth_on(const Topology& topology, std::size_t level) {
  for (const TopologyLink& link : topology.links) {
    if (link.level == level) { return link.bandwidth; }
  }
  throw_internal_error("links on every level", __FILE__, __LINE__);
}

}  // namespace

BytesPerSecond port_bandwidth(const TopologySpec& spec, const Topology& topology) {
  if (spec.kind != TopologyKind::list) { return spec.bandwidth; }
  std::vector<double> ports(topology.devices, 0.0);
  for (const TopologyLink& link : topology.links) {
    if (link.from < topology.devices) { ports[link.from] += link.bandwidth; }
  }
  return BytesPerSecond(*std::max_element(ports.begin(), ports.end()));
}

std::vector<NetworkDimension> dimensions_of(const TopologySpec& spec, const Topology& topology) {
  std::vector<NetworkDimension> dimensions;
  Routes routes(topology);
  std::vector<std::size_t> axes;  // by level: those of one device are none
  for (std::size_t axis = 0; axis < spec.sizes.size(); ++axis) {
    if (spec.sizes[axis] > 1) { axes.push_back(axis); }
  }
  const std::size_t first_level = topology.has_scale_up ? 1 : 0;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < topology.levels.size(); ++i) {
    const TopologyLevel& level = topology.levels[i];
    NetworkDimension dimension;
    dimension.name = level.name;
    dimension.size = level.size;
    dimension.wiring = level.wiring;
    const bool is_scale_up = topology.has_scale_up && i == 0;
    dimension.link = is_scale_up                ? spec.scale_up->link
                     : !spec.axis_links.empty() ? spec.axis_links[axes[i]]
                                                : spec.link;
    dimension.route_latency = route_latency_on(routes, stride, level);
    if (!is_scale_up && !spec.picojoules_per_bit.empty()) {
      const std::size_t given = !axes.empty() && spec.kind != TopologyKind::hyperx ? axes[i] : i - first_level;
      dimension.link.picojoules_per_bit = spec.picojoules_per_bit[std::min(given, spec.picojoules_per_bit.size() - 1)];
    }
    if (is_scale_up) {
      dimension.bandwidth = spec.scale_up->bandwidth;
    } else if (spec.kind == TopologyKind::grid) {
      const auto links = static_cast<double>(links_of_device(level.wiring, level.size));
      dimension.bandwidth = BytesPerSecond(link_bandwidth_on(topology, i) * links);
    } else if (has_neighbours_only(level.wiring)) {
      const double links = spec.kind == TopologyKind::torus && level.size > 2 ? 2 : 1;
      dimension.bandwidth = BytesPerSecond(link_bandwidth_on(topology, i) * links);
    } else {
      const double port = port_bandwidth(spec, topology).value();
      const double rate = std::min(
          port, rate_of_pattern(routes, [&](std::uint32_t device) { return peers_on(device, stride, level.size); }));
      const bool is_first = i == first_level;
      dimension.bandwidth = BytesPerSecond(is_first ? rate : port);
      if (!is_first) { dimension.oversubscription = port / rate; }
    }
    dimensions.push_back(std::move(dimension));
    stride *= level.size;
  }
  return dimensions;
}

TopologyFigures figures_of(const TopologySpec& spec, const Topology& topology) {
  TopologyFigures figures;
  figures.devices = topology.devices;
  figures.switches = static_cast<std::int64_t>(topology.switches());
  figures.cables = static_cast<std::int64_t>(topology.links.size() / 2);
  std::vector<std::int64_t> ports(topology.nodes.size(), 0);
  for (const TopologyLink& link : topology.links) { ++ports[link.from]; }
  const auto first = figures.switches > 0 ? static_cast<std::ptrdiff_t>(topology.devices) : 0;
  figures.most_ports = *std::max_element(ports.begin() + first, ports.end());
  Routes routes(topology);
  figures.diameter = diameter_of(routes);
  figures.bisection = bisection_of(topology);
  if (topology.devices <= kMostAllToAll) {
    figures.all_to_all =
        rate_of_pattern(routes, [&](std::uint32_t device) { return peers_on(device, 1, topology.devices); });
  }
  figures.switch_watts = spec.switch_watts * static_cast<double>(figures.switches);
  figures.switch_price_usd = spec.switch_price_usd * static_cast<double>(figures.switches);
  return figures;
}

}  // namespace orrery::hardware
