#include "orrery/hardware/topology_records.hpp"

#include <utility>

#include "orrery/hardware/records.hpp"
#include "orrery/hardware/topology.hpp"

namespace orrery::config {

namespace {

using hardware::CableSpec;
using hardware::InSwitchLimits;
using hardware::ScaleUpDomain;
using hardware::TopologySpec;

constexpr Bounds<BytesPerSecond> kLinkBandwidth{
    .min = BytesPerSecond(1.0), .max = BytesPerSecond(1e18), .unit = "Gb/s"};
constexpr std::int64_t kMostCount = hardware::kMostRoutedDevices;

Objection can_be_built(const TopologySpec& spec) {
  auto mistake = hardware::mistake_in(spec);
  return mistake ? Objection(std::move(mistake->at), std::move(mistake->message)) : Objection();
}

}  // namespace

const Record<ScaleUpDomain>& Described<ScaleUpDomain>::record() {
  static const auto record =
      Record<ScaleUpDomain>("scale-up domain", "Devices that one switch (NVLink) joins below the network.")
          .required("size", &ScaleUpDomain::size, "devices", {.min = 1, .max = kMostCount})
          .required("bandwidth", &ScaleUpDomain::bandwidth, "of a device, per direction", kLinkBandwidth)
          .required("link", &ScaleUpDomain::link, "a link class, or the name of one");
  return record;
}

const Record<CableSpec>& Described<CableSpec>::record() {
  static const auto record = Record<CableSpec>("cable", "A cable of a list: both directions.")
                                 .required("from", &CableSpec::from, "name of a device or switch")
                                 .required("to", &CableSpec::to, "name of a device or switch")
                                 .optional("bandwidth", &CableSpec::bandwidth, "per direction; default: the topology's",
                                           {.min = BytesPerSecond(1.0), .max = BytesPerSecond(1e18), .unit = "Gb/s"})
                                 .optional("count", &CableSpec::count, "such cables", {.min = 1, .max = kMostCount});
  return record;
}

const Record<InSwitchLimits>& Described<InSwitchLimits>::record() {
  static const auto record =
      Record<InSwitchLimits>("in-switch limits",
                             "What switches have to take part in collectives; buffer and rate: 0 = no limit.")
          .optional("groups", &InSwitchLimits::groups,
                    "process groups that a switch serves at once; default: any number", {.min = 0, .max = kMostCount})
          .optional("buffer", &InSwitchLimits::buffer, "of a switch, for each group", {.max = Bytes(1e15)})
          .optional("rate", &InSwitchLimits::rate, "at which a switch reduces, counted as data arrive",
                    {.max = BytesPerSecond(1e18), .unit = "GB/s"})
          .check([](const InSwitchLimits& limits) -> Objection {
            if (limits.groups.value_or(1) > 0) { return {}; }
            return {"/groups",
                    "0: switches without room for a group reduce nothing; leave in_switch out, or give 1 or more"};
          });
  return record;
}

const Record<TopologySpec>& Described<TopologySpec>::record() {
  constexpr Bounds<std::int64_t> kCount{.min = 0, .max = kMostCount};
  constexpr Bounds<std::vector<std::int64_t>> kCounts{.min = 1, .max = kMostCount};
  static const auto record =
      Record<TopologySpec>("topology", "A network as switches and links (docs/models/topologies.md).")
          .required("kind", &TopologySpec::kind, "kind of network")
          .required("link", &TopologySpec::link, "a link class, or the name of one")
          .required("bandwidth", &TopologySpec::bandwidth, "of a device's link, per direction", kLinkBandwidth)
          .optional("bandwidths", &TopologySpec::bandwidths,
                    "of the links of each level above the devices' (grids: of each axis); default: bandwidth",
                    {.min = BytesPerSecond(1.0), .max = BytesPerSecond(1e18), .unit = "Gb/s"})
          .optional("routing", &TopologySpec::routing, "choice among shortest routes")
          .optional("scale_up", &TopologySpec::scale_up, "devices joined below the network")
          .optional("radix", &TopologySpec::radix, "fat-tree: ports of a switch", kCount)
          .optional("levels", &TopologySpec::levels, "fat-tree with radix: levels of switches", {.min = 2, .max = 5})
          .optional("oversubscription", &TopologySpec::oversubscription,
                    "fat-tree: ports down / ports up of each level; rails: of the leaf switches",
                    {.min = 1.0, .max = 1e4})
          .optional("down", &TopologySpec::down, "trees: children of a switch, by level", kCounts)
          .optional("up", &TopologySpec::up, "fat-tree: parents of a child, by level, first 1", kCounts)
          .optional("cables", &TopologySpec::cables, "trees: cables from a child to each parent, by level", kCounts)
          .optional("blocks", &TopologySpec::blocks,
                    "fat-tree with radix: leaves (2 levels) or pods (3 levels); 0 = as many as the radix allows",
                    kCount)
          .optional("nodes", &TopologySpec::nodes, "rails: nodes of a pod", kCount)
          .optional("pods", &TopologySpec::pods, "rails: pods", {.min = 1, .max = kMostCount})
          .optional("groups", &TopologySpec::groups, "dragonfly: groups", kCount)
          .optional("routers", &TopologySpec::routers, "dragonfly: routers of a group", kCount)
          .optional("global_links", &TopologySpec::global_links, "dragonfly: links of a router to other groups", kCount)
          .optional("hosts", &TopologySpec::hosts, "dragonfly, hyperx: devices of a router",
                    {.min = 1, .max = kMostCount})
          .optional("sizes", &TopologySpec::sizes, "hyperx, torus, mesh, grid: nodes along each axis", kCounts)
          .optional("wirings", &TopologySpec::wirings, "grid: of each axis")
          .optional("axis_links", &TopologySpec::axis_links, "grid: link classes of each axis; default: link")
          .optional("devices", &TopologySpec::devices, "list: names of devices, in the order of ranks")
          .optional("switches", &TopologySpec::switches, "list: names of switches")
          .optional("links", &TopologySpec::links, "list: cables")
          .optional("in_switch", &TopologySpec::in_switch, "limits of switches that take part in collectives")
          .optional("switch_latency", &TopologySpec::switch_latency,
                    "of every switch that a route passes beyond the first; of every device that passes it on",
                    {.max = Seconds(1.0)})
          .optional("picojoules_per_bit", &TopologySpec::picojoules_per_bit,
                    "of the cables of each level above the scale-up domain (grids: of each axis), pJ; the last one "
                    "holds for the rest; default: of the link class",
                    {.min = 0.0, .max = 1e6})
          .optional("switch_watts", &TopologySpec::switch_watts, "power of a switch, W; 0 = unknown",
                    {.min = 0.0, .max = 1e9})
          .optional("switch_price_usd", &TopologySpec::switch_price_usd, "price of a switch, USD; 0 = unknown",
                    {.min = 0.0, .max = 1e12})
          .check(can_be_built);
  return record;
}

}  // namespace orrery::config
