// A cluster: identical accelerators joined by network dimensions, innermost first.
//
// Device r has coordinates (r mod n0, (r / n0) mod n1, ...) for dimension sizes n0, n1, ... The last dimension's size
// follows from the number of devices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::hardware {

// More than anybody has built, few enough that products of counts stay exact.
inline constexpr std::int64_t kMaxDevices = std::int64_t{1} << 26;

// More than any machine has levels; a group's shape is kept in lists of this length.
inline constexpr int kMaxDimensions = 6;

// One wire protocol of a collective library on a link class: how long a step takes besides its bytes, and which part
// of the link's bandwidth is payload. (NCCL: LL, LL128, Simple.)
//
//   ring of n, one dimension:  time = ring_base + steps ring_step + bytes per member / payload rate
//   tree of n, one dimension:  time = tree_base + hops tree_step  + bytes per member / payload rate
//   payload rate = dimension bandwidth x link efficiency x bandwidth_fraction
//
// The bases are of the library, the steps of the link: a collective over several dimensions pays the base once, and
// each step at its own link's price.
struct Protocol {
  std::string name;
  Seconds ring_base;                // once per ring collective: launch and synchronisation
  Seconds ring_step;                // per ring step on this link
  Seconds tree_base;                // once per tree collective
  Seconds tree_step;                // per tree hop on this link
  double bandwidth_fraction = 1.0;  // payload bandwidth / bandwidth that a large message reaches on the link
  // Part of a member's own shard that passes the kernel besides what the link carries: a ring of n costs n - 1 +
  // own_share shards.
  double own_share = 0.0;
  // The library leaves the protocol for a wider one where a ring or tree step has more bytes than the link, at its
  // nominal bandwidth, moves in this time.
  Seconds until = {};          // 0: it never does
  Seconds exchange_base = {};  // on top of ring_base where every member sends to every other one by itself
  bool exchanges = true;       // such exchanges use it
};

// A kind of link: everything about it that does not depend on how many there are.
//
// In-switch reduction (NVLink SHARP, "NVLS"): for an all-reduce of S bytes among n members, the switch reads S from
// every member, hands each its reduced share S/n, takes that share back and multicasts it, so that every member moves
// S (1 + 1/n) bytes out and as many in, both directions at once:
//
//   time = in_switch_base + traversals in_switch_step + S (1 + 1/n) / (dimension bandwidth x in_switch_efficiency)
//
// With in_switch_efficiency 0.68 this gives back the all-reduce rates measured on 5, 6, 7 and 8 H200 within 2 % (see
// docs/models/hardware.md), which a plain S / rate does not. It stands alone: `efficiency` does not enter.
struct LinkClass {
  std::string name;  // e.g. "nvlink4"
  std::string description;
  BytesPerSecond port;              // one port, one direction; 0: every device's share is a port of its own
  double efficiency = 1.0;          // best measured payload rate / nominal bandwidth, large messages
  Seconds latency;                  // of one message, software included, device to device; its bytes come on top
  std::vector<Protocol> protocols;  // at least one
  Seconds in_switch_base;           // once per in-switch collective
  Seconds in_switch_step;           // per traversal of the reducing switch
  double in_switch_efficiency =
      0;                       // part of the bandwidth that in-switch traffic reaches; 0 = the switch cannot reduce
  Basis basis = Basis::prior;  // of efficiency, latency and protocols
  Sources sources;
};

// How the devices of one dimension are joined.
enum class Wiring : std::uint8_t {
  switched,  // every device has its full bandwidth into one switch
  rails,     // device i of every node joins switch fabric i; a device has its own NIC
  ring,      // neighbours only, in both directions; devices joined by a line of neighbours have half the bandwidth
  mesh,      // a link of its own for every pair: a device reaches k others with k / (size - 1) of its bandwidth
};

struct NetworkDimension {
  std::string name;  // e.g. "nvlink", "infiniband"
  Wiring wiring = Wiring::switched;
  std::int64_t size = 0;          // devices along this dimension; 0 in a template: as many as the cluster needs
  BytesPerSecond bandwidth;       // per device, per direction; over all its links of the dimension
  double oversubscription = 1.0;  // of the dimension's switches: what the devices send over what passes at once
  LinkClass link;

  // What a device sends at while all others do, too.
  [[nodiscard]] BytesPerSecond rate() const { return bandwidth / oversubscription; }
  // What one of `members` devices sends the others at, all of them together.
  [[nodiscard]] BytesPerSecond bandwidth_among(std::int64_t members) const;
};

// Memory beside the accelerator's own: a device's share of it, and its link to it.
struct SecondTier {
  Bytes memory;              // per device; 0: there is none
  BytesPerSecond bandwidth;  // per device, per direction
  Seconds latency;           // of one transfer
};

struct Cluster {
  std::string name;
  std::string description;
  Accelerator accelerator;
  SecondTier second_tier;                    // host memory behind PCIe or a coherent link, or a pool
  std::vector<NetworkDimension> dimensions;  // innermost first
  std::int64_t devices = 0;                  // product of the dimensions' sizes
  double node_power_watts = 0.0;             // of one innermost-dimension group, everything included
  double node_price_usd = 0.0;               // of one innermost-dimension group; 0: not known
  double usd_per_device_hour = 0.0;          // rented; 0: not known
  double speed_spread = 0.0;                 // of nodes at the same work, relative standard deviation
  Sources sources;

  // Devices that share the innermost dimension.
  [[nodiscard]] std::int64_t node_size() const { return dimensions.empty() ? 1 : dimensions.front().size; }
};

// How much longer than a typical one the slowest of so many devices (or nodes) takes for the same kernels, where their
// times are normally distributed with relative standard deviation `spread`:
//   1 + spread x(n),  x(n) = the (n - 3/8) / (n + 1/4) quantile of the standard normal distribution
// which is within 5 % of the mean of the largest of n draws (G. Blom, Statistical Estimates and Transformed
// Beta-Variables, 1958). 1 for one; grows with n and with spread. Those who wait for each other in every step all go at
// the slowest one's pace.
[[nodiscard]] double slowest_pace(double spread, std::int64_t devices);

// What the weakest efficiency of a cluster rests on, and whose it is: the accelerator's or a link's; of all links, or
// of those that join anything at this size. The accelerator comes first, then inner links.
enum class Links : std::uint8_t { in_use, all };
struct Ground {
  Basis basis = Basis::measured;
  std::string_view of;  // a name in the cluster
};
[[nodiscard]] Ground weakest_ground(const Cluster& cluster, Links links = Links::in_use);

// The same cluster with `devices` accelerators: a whole number of nodes, or fewer than one node. With more than two
// dimensions each is filled before the next one opens. Dimensions that are not filled shrink (their size may become 1),
// and the last one grows without limit, unless it is the only one and has a size. Fails naming the nearest counts that
// would do.
// The bandwidth of a mesh or ring shrinks with its links, price and power of a node with its devices. The accelerator's
// pace becomes that of the slowest node.
[[nodiscard]] Result<Cluster> scaled(Cluster cluster, std::int64_t devices);

}  // namespace orrery::hardware
