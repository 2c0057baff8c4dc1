// A network as nodes, links and routes: what a cluster's `topology` describes (docs/models/topologies.md).
//
// TopologySpec is the description: a kind with its figures, or an explicit list. build() makes the network of it:
// devices (nodes 0 .. devices - 1, device r = rank r) and switches, joined by links. A link is one direction of a
// cable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/topology_spec.hpp"

namespace orrery::hardware {

struct TopologyNode {
  std::string name;
  std::uint8_t height = 0;   // devices 0, switches 1 and up: for drawings
  std::uint32_t stride = 1;  // d-mod-k: destinations count in units of so many devices (ways up from a device to here)
};

struct TopologyLink {
  std::uint32_t from = 0, to = 0;  // nodes
  double bandwidth = 0;            // bytes/s
  std::uint8_t level = 0;          // of Topology::levels: the innermost one whose traffic uses it
};

// Devices that differ in one coordinate: rank = x0 + n0 (x1 + n1 (x2 + ...)).
struct TopologyLevel {
  std::string name;
  std::int64_t size = 1;
  Wiring wiring = Wiring::switched;
};

struct Topology {
  std::vector<TopologyNode> nodes;
  std::vector<TopologyLink> links;    // the two directions of a cable one after the other
  std::vector<TopologyLevel> levels;  // innermost first; none has size 1
  std::uint32_t devices = 0;
  bool devices_forward = false;     // traffic of others passes devices
  bool has_scale_up = false;        // the first level is the scale-up domain
  std::uint32_t group_routers = 0;  // dragonfly: switches of a group, which are the last ones, group by group
  Routing routing = Routing::d_mod_k;
  Seconds switch_latency;  // see added_latency

  [[nodiscard]] std::size_t switches() const { return nodes.size() - devices; }
};

// More devices are not routed one by one.
inline constexpr std::int64_t kMostRoutedDevices = 65'536;
inline constexpr std::int64_t kMostForwardingDevices = 16'384;

// The network of a valid description (mistake_in).
[[nodiscard]] Topology build(const TopologySpec& spec);

// The number of devices of a description; 0 if that is above kMostRoutedDevices or a figure is missing.
[[nodiscard]] std::int64_t device_count(const TopologySpec& spec);

// Why no network can be built, with a JSON pointer to the wrong figure; nothing if one can.
struct TopologyMistake {
  std::string at, message;
};
[[nodiscard]] std::optional<TopologyMistake> mistake_in(const TopologySpec& spec);

// The dimensions that the closed form uses (levels with their bandwidths). The bandwidth of a device on a level that
// shares links is what its routes leave when every device sends to all of its peers on that level at once.
[[nodiscard]] std::vector<NetworkDimension> dimensions_of(const TopologySpec& spec, const Topology& topology);

// Of a device into the network above the scale-up domain. In a list: the most that the cables of a device have
// together.
[[nodiscard]] BytesPerSecond port_bandwidth(const TopologySpec& spec, const Topology& topology);

inline constexpr std::int64_t kMostAllToAll = 2048;

struct TopologyFigures {
  std::int64_t devices = 0, switches = 0, cables = 0;
  std::int64_t most_ports = 0;  // of a switch (of a device, if there is none)
  std::int64_t diameter = 0;    // links on the longest of the shortest routes between two devices
  double bisection = 0;         // bytes/s from the first half of the devices to the second: maximum flow
  // Bytes/s of each device, all sending to all others at once, along the routes; up to kMostAllToAll devices.
  std::optional<double> all_to_all;
  double switch_watts = 0, switch_price_usd = 0;  // all switches; 0: not known
};
[[nodiscard]] TopologyFigures figures_of(const TopologySpec& spec, const Topology& topology);

}  // namespace orrery::hardware
