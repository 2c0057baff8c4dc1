// Figures of a topology, and the dimensions that the closed form uses.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
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

// Equal groups of a level, of neighbours or spread evenly: the group of a position; none for positions left over.
struct Grouping {
  std::int64_t size = 1, members = 1;
  bool is_spread = false;

  [[nodiscard]] std::optional<std::int64_t> group_of(std::int64_t position) const {
    const std::int64_t groups = size / members;
    if (position >= groups * members) { return std::nullopt; }
    return is_spread ? position % groups : position / members;
  }
};

// What all groups of a level put on the links while each device sends to all others of its group.
class GroupLoads {
 public:
  GroupLoads(Routes& routes, const TopologyLevel& level, std::int64_t stride)
      : routes_(routes), size_(level.size), stride_(stride) {}

  // Bytes/s of each device. Groups of a divisor of `members` that were asked for before lie inside these groups, and
  // their messages are not counted again.
  double rate_among(std::int64_t members, bool is_spread) {
    auto& known = loads_[is_spread ? 1 : 0];
    const Grouping grouping{size_, members, is_spread};
    Grouping inner{size_, 1, is_spread};
    std::vector<double> load(routes_.topology().links.size(), 0.0);
    for (const auto& [divisor, its] : known) {
      if (members % divisor != 0 || size_ % members != 0 || size_ % divisor != 0) { continue; }
      inner.members = divisor;
      load = its;
    }
    for (std::uint32_t device = 0; device < routes_.topology().devices; ++device) {
      const std::int64_t own = device / stride_ % size_;
      const auto group = grouping.group_of(own);
      for (std::int64_t other = 0; group && other < size_; ++other) {
        if (grouping.group_of(other) != group || inner.group_of(other) == inner.group_of(own)) { continue; }
        routes_.charge(device, static_cast<std::uint32_t>(device + (other - own) * stride_), 1.0, load);
      }
    }
    const double rate = least_rate(routes_, load) * static_cast<double>(members - 1);
    known.insert_or_assign(members, std::move(load));
    return rate;
  }

 private:
  Routes& routes_;
  std::int64_t size_, stride_;
  std::array<std::map<std::int64_t, std::vector<double>>, 2> loads_;  // by members; of neighbours, spread
};

// Bytes/s of each device while all groups of neighbours send to the next member on either side, the last one being next
// to the first.
double rate_to_neighbours(Routes& routes, const TopologyLevel& level, std::int64_t stride, std::int64_t members) {
  const Grouping grouping{level.size, members, false};
  return rate_of_pattern(routes, [&](std::uint32_t device) {
    const std::int64_t own = device / stride % level.size;
    const auto group = grouping.group_of(own);
    if (!group) { return std::vector<std::uint32_t>(); }
    const auto at = [&](std::int64_t index) {
      return static_cast<std::uint32_t>(device + (*group * members + index % members - own) * stride);
    };
    return std::vector{at(own % members + 1), at(own % members + members - 1)};
  });
}

// Bandwidth that routes leave a device to the other members of its group, by the number of members up to the whole
// level, while all groups of the level use the links: of groups of neighbours and of groups that are spread evenly, the
// lower. Numbers of members that do not divide the level's are interpolated; on rings and lines they are as the next
// lower number.
std::vector<double> rates_among(Routes& routes, const TopologyLevel& level, std::int64_t stride) {
  const bool to_neighbours = has_neighbours_only(level.wiring);
  GroupLoads loads(routes, level, stride);
  std::vector<double> rates(static_cast<std::size_t>(level.size) + 1, 0.0);
  std::size_t last = 1;
  for (std::int64_t members = 2; members <= level.size; ++members) {
    if (members > 2 && level.size % members != 0) { continue; }
    const auto at = static_cast<std::size_t>(members);
    rates[at] = to_neighbours ? rate_to_neighbours(routes, level, stride, members)
                              : std::min(loads.rate_among(members, false), loads.rate_among(members, true));
    if (last == 1) { rates[last] = rates[at]; }
    for (std::size_t i = last + 1; i < at; ++i) {
      const double way = static_cast<double>(i - last) / static_cast<double>(at - last);
      rates[i] = to_neighbours ? rates[last] : std::lerp(rates[last], rates[at], way);
    }
    last = at;
  }
  return rates;
}

// Of the longest route between devices that send to each other on a level: neighbours where links lead to neighbours
// only, as collectives are rings there, the last device being next to the first; any two elsewhere.
Seconds route_latency_on(Routes& routes, std::int64_t stride, const TopologyLevel& level) {
  const Topology& topology = routes.topology();
  Seconds longest;
  if (!(topology.switch_latency > Seconds(0))) { return longest; }
  const bool to_neighbours = has_neighbours_only(level.wiring);
  for (std::uint32_t device = 0; device < topology.devices; ++device) {
    const std::int64_t own = device / stride % level.size;
    for (std::int64_t way = 1; way < level.size; ++way) {
      if (to_neighbours && way > 1 && way + 1 < level.size) { continue; }
      const std::int64_t peer = device + ((own + way) % level.size - own) * stride;
      longest = max(longest, added_latency(topology, routes.route(device, static_cast<std::uint32_t>(peer))));
    }
  }
  return longest;
}

// NetworkDimension::parts of these rates.
std::vector<double> parts_of(std::vector<double> rates, Wiring wiring) {
  const double whole = rates.back();
  for (double& rate : rates) { rate /= whole; }
  rates.front() = rates.back();
  const bool is_whole = std::all_of(rates.begin(), rates.end(), [](double part) { return part == 1.0; });
  return is_whole && has_switch(wiring) ? std::vector<double>() : rates;
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
    } else {
      const bool has_axes = is_grid(spec.kind);  // every axis has links of its own
      const double port = has_axes ? std::numeric_limits<double>::infinity() : port_bandwidth(spec, topology).value();
      std::vector<double> rates = rates_among(routes, level, stride);
      for (double& rate : rates) { rate = std::min(rate, port); }
      const bool is_tier = !has_axes && i != first_level;
      dimension.bandwidth = BytesPerSecond(is_tier ? port : rates.back());
      if (is_tier) { dimension.oversubscription = port / rates.back(); }
      dimension.parts = parts_of(std::move(rates), level.wiring);
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
    const TopologyLevel all{"", topology.devices};
    figures.all_to_all = GroupLoads(routes, all, 1).rate_among(topology.devices, false);
  }
  figures.switch_watts = spec.switch_watts * static_cast<double>(figures.switches);
  figures.switch_price_usd = spec.switch_price_usd * static_cast<double>(figures.switches);
  return figures;
}

}  // namespace orrery::hardware
