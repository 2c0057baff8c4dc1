// The description of a network's topology, as a cluster file states it. topology.hpp builds the network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/link_class.hpp"
#include "orrery/hardware/wiring.hpp"

namespace orrery::hardware {

enum class TopologyKind : std::uint8_t {
  fat_tree,     // switches in 2 or 3 (or more) levels, several ways up
  rails,        // device i of every node of a pod on leaf switch i; spines join the leaves
  dragonfly,    // groups of routers, each a full mesh; one mesh of groups over global links
  hyperx,       // routers on a grid, a link to every router that differs in one coordinate
  torus,        // devices on a grid with wrap-around links
  mesh,         // devices on a grid
  switch_tree,  // one way up from each switch
  grid,         // devices on a grid, each axis with a wiring of its own
  list,         // nodes and cables one by one
};

// Devices are joined along axes, and pass on traffic.
[[nodiscard]] constexpr bool is_grid(TopologyKind kind) {
  return kind == TopologyKind::torus || kind == TopologyKind::mesh || kind == TopologyKind::grid;
}

// How a message finds its way among the shortest routes (valiant: of two of them).
enum class Routing : std::uint8_t {
  shortest,  // the first link that gets nearer; on grids dimension by dimension
  d_mod_k,   // link number (destination / ways up from a device to here) modulo ways
  ecmp,      // by a hash of source, destination and switch
  spread,    // evenly over all ways, packet by packet
  valiant,   // over a node that a hash of source and destination chooses
  adaptive,  // the way with the least load by the messages before
};

struct ScaleUpDomain {
  std::int64_t size = 1;  // devices
  BytesPerSecond bandwidth;
  LinkClass link;
};

struct CableSpec {
  std::string from, to;                          // names of devices or switches
  std::optional<BytesPerSecond> bandwidth = {};  // not given: the topology's
  std::int64_t count = 1;
};

// What switches have to take part in collectives; 0: no limit.
struct InSwitchLimits {
  std::optional<std::int64_t> groups;  // process groups whose collectives a switch takes part in at once; any number
  Bytes buffer;                        // of a switch, for each group
  BytesPerSecond rate;                 // at which a switch reduces, counted as data arrive

  [[nodiscard]] bool has_room(std::int64_t served) const { return !groups || served < *groups; }
};

struct TopologySpec {
  TopologyKind kind = TopologyKind::fat_tree;
  LinkClass link;
  BytesPerSecond bandwidth;                // of a device's link to the network, per direction
  std::vector<BytesPerSecond> bandwidths;  // of the links of each level above it; not given: `bandwidth`
  Routing routing = Routing::d_mod_k;
  std::optional<ScaleUpDomain> scale_up;
  // fat_tree: radix with levels and oversubscription, or down with up and cables
  std::int64_t radix = 0, levels = 2;
  std::vector<double> oversubscription;
  std::vector<std::int64_t> down, up, cables;
  std::int64_t blocks = 0;  // of the outermost level (leaves, pods); 0: as many as the radix allows
  // rails: nodes of a pod, pods; oversubscription of the leaves
  std::int64_t nodes = 0, pods = 1;
  // dragonfly: groups, routers of a group, global links of a router; devices of a router (hyperx, too)
  std::int64_t groups = 0, routers = 0, global_links = 0, hosts = 1;
  std::vector<std::int64_t> sizes;  // hyperx, torus, mesh, grid
  // grid: of each axis; link classes not given: `link`. `bandwidth` and `bandwidths` are those of links.
  std::vector<Wiring> wirings;
  std::vector<LinkClass> axis_links;
  // list
  std::vector<std::string> devices, switches;
  std::vector<CableSpec> links;
  Seconds switch_latency;                   // of every node that a route passes beyond its first switch
  std::vector<double> picojoules_per_bit;   // of the cables of each level above the scale-up domain; not given: link
  std::optional<InSwitchLimits> in_switch;  // not given: no limits
  double switch_watts = 0, switch_price_usd = 0;  // of one switch; 0: not known
};

}  // namespace orrery::hardware
