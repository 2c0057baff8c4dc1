// A cluster: accelerators joined by network dimensions, innermost first; identical ones, unless `nodes` are given.
//
// Device r has coordinates (r mod n0, (r / n0) mod n1, ...) for dimension sizes n0, n1, ... The last dimension's size
// follows from the number of devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/link_class.hpp"
#include "orrery/hardware/topology_spec.hpp"
#include "orrery/hardware/wiring.hpp"

namespace orrery::hardware {

// Larger than any cluster built so far; small enough that products of counts stay exact.
inline constexpr std::int64_t kMaxDevices = std::int64_t{1} << 26;

// More levels than any machine has; a group's shape is stored in arrays of this length.
inline constexpr int kMaxDimensions = 6;

struct NetworkDimension {
  std::string name;  // e.g. "nvlink", "infiniband"
  Wiring wiring = Wiring::switched;
  std::int64_t size = 0;     // devices along this dimension; 0 in a template: as many as the cluster needs
  std::int64_t host = 0;     // devices of one host, where the innermost dimension has several: a job takes whole hosts
  std::int64_t most = 0;     // of a dimension without a size: devices along it at most; 0: no limit
  BytesPerSecond bandwidth;  // per device, per direction; over all its links of the dimension
  // Bandwidth of all devices / bandwidth through the dimension's switches. If given, the dimension is a tier of
  // switches above the next inner dimension: what crosses it passes that one's ports, too, and so on inwards.
  std::optional<double> oversubscription;
  // Of a topology: bandwidth that routes leave a device to the other members of a group / rate(), by the number of
  // members. Empty: as the wiring says.
  std::vector<double> parts;
  LinkClass link;
  Seconds route_latency = {};  // of a step, in addition to the link class: the longest route of a topology's level

  // Bandwidth of a device while all others send, too.
  [[nodiscard]] BytesPerSecond rate() const { return bandwidth / oversubscription.value_or(1.0); }
  // Whether it is a tier above the ports of the next inner dimension.
  [[nodiscard]] bool is_tier() const { return oversubscription.has_value(); }
  // Bandwidth of a device to the other members of a group of `members`.
  [[nodiscard]] BytesPerSecond bandwidth_among(std::int64_t members) const;
};

// A level of the way from devices to a pool of memory: links, switches or memories that neighbours share fairly.
struct PoolLevel {
  std::string name;
  std::int64_t devices = 1;  // neighbours that share it: devices 0 .. n - 1, n .. 2 n - 1, ...
  std::int64_t units = 1;    // links, switches or memories of these devices; every access is striped over all of them
  BytesPerSecond bandwidth;  // of a unit, per direction
  // The switch at its inner end multicasts what the members of a process group load together, and reduces what they
  // store: bytes of the group pass the level, and those further out, once for the devices that share it.
  bool combines = false;

  [[nodiscard]] BytesPerSecond capacity() const { return bandwidth * static_cast<double>(units); }
};

// Second memory tier (host memory or a pool): a device's share of it, and the link to it.
struct SecondTier {
  Bytes memory;                          // per device; 0: no second tier
  BytesPerSecond bandwidth;              // per device, per direction
  Seconds latency;                       // of one transfer
  BytesPerSecond memory_bandwidth = {};  // nominal, of the host's memory, for the host's own processors; 0: not known
  // Part of it that an optimizer update by the host reaches. CPU-Adam takes 0.22, 0.51, 1.03, 2.41 and 2.57 s for 1, 2,
  // 4, 8 and 10 billion weights of 30 bytes each (unverified: from memory of ZeRO-Offload, arXiv:2101.06840, table of
  // Adam latencies) on a DGX-2 of 12 channels of DDR4-2666, 256 GB/s: 136, 118, 117, 100 and 117 GB/s.
  double update_efficiency = 0.46;
  std::vector<PoolLevel> levels =
      {};  // of a pool, behind the device's own link (`bandwidth`), from the devices outwards

  // Of a device while all devices use the tier.
  [[nodiscard]] BytesPerSecond rate() const;

  // A level multicasts what several devices load, and reduces what they store.
  [[nodiscard]] bool combines() const;

  [[nodiscard]] BytesPerSecond update_rate() const { return memory_bandwidth * update_efficiency; }
};

// Nodes (groups of the innermost dimension) with the same accelerators, of a cluster that has several kinds.
struct Nodes {
  std::int64_t count = 1;
  Accelerator accelerator;
};
inline constexpr std::size_t kMostNodeKinds = 64;

struct Cluster {
  std::string name;
  std::string description;
  Accelerator accelerator;                   // of the first nodes, if there are several kinds
  std::vector<Nodes> nodes;                  // several kinds, in the order of devices; empty: all are alike
  SecondTier second_tier;                    // host memory over PCIe or a coherent link, or a pool
  std::vector<NetworkDimension> dimensions;  // innermost first
  std::optional<TopologySpec> topology;      // the network as links, if given; `dimensions` then follow from it
  std::int64_t devices = 0;                  // product of the dimensions' sizes
  double node_power_watts = 0.0;             // of one innermost-dimension group, everything included
  double node_price_usd = 0.0;               // of one innermost-dimension group; 0: not known
  double usd_per_device_hour = 0.0;          // rented; 0: not known
  double host_slowdown = 1.0;                // host times of inference engines, relative to those of their profiles
  double speed_spread = 0.0;                 // relative standard deviation of nodes' times for the same work
  Sources sources;
  std::vector<std::string> warnings;  // set by scaled()

  // Devices that share the innermost dimension.
  [[nodiscard]] std::int64_t node_size() const { return dimensions.empty() ? 1 : dimensions.front().size; }
  // Entry of `nodes` that a device is of. Requires nodes.
  [[nodiscard]] std::size_t nodes_entry(std::int64_t device) const;
  // With nodes of the given kinds instead, one entry of `known` for each node in order; equal neighbours are one entry.
  void set_nodes(const std::vector<Nodes>& known, const std::vector<std::size_t>& entries);
  // The same for every kind of accelerator.
  template <class Change>
  void change_accelerators(Change&& change) {
    change(accelerator);
    for (Nodes& some : nodes) { change(some.accelerator); }
  }
};

// Straggler: time of the slowest of n devices (or nodes) / time of the median one, where times for the same kernels are
// normally distributed with relative standard deviation `spread`:
//   1 + spread x(n),  x(n) = the (n - 3/8) / (n + 1/4) quantile of the standard normal distribution
// which is within 5 % of the mean of the largest of n samples (G. Blom, Statistical Estimates and Transformed
// Beta-Variables, 1958). 1 for one device; grows with n and with spread. Devices that synchronise in every step all run
// at the straggler's speed.
[[nodiscard]] double straggler_slowdown(double spread, std::int64_t devices);

// The weakest basis among the efficiencies of a cluster's accelerator and links, and whose it is. Links that connect
// nothing at this size count with Links::all only. On ties the accelerator comes first, then inner links.
enum class Links : std::uint8_t { in_use, all };
struct Ground {
  Basis basis = Basis::measured;
  std::string_view of;  // a name in the cluster
};
[[nodiscard]] Ground weakest_ground(const Cluster& cluster, Links links = Links::in_use);

// What an answer has to say of a cluster: its own warnings, and doubts about its accelerators' cores.
[[nodiscard]] std::vector<std::string> warnings_of(const Cluster& cluster);

// The cluster with `devices` accelerators: a whole number of nodes (of hosts, where the innermost dimension has
// several), or fewer than one node; of several kinds, the first. A dimension that is not filled shrinks (its size may
// become 1). Where the devices do not fill a whole number of blocks of switched dimensions, every block takes the same
// part of its devices, the largest that is possible: 8,192 devices on pods of 3,072 are four pods with 2,048 each. Less
// than a quarter gives a warning. The last dimension grows up to its size or limit, without bounds if it has neither.
// Errors name the nearest valid counts. The bandwidth of a mesh or ring is reduced to the links in use, price and power
// of a node to its devices in use. The slowdown by stragglers is set for the new number of nodes.
[[nodiscard]] Result<Cluster> scaled(Cluster cluster, std::int64_t devices);

}  // namespace orrery::hardware
