// One collective among all devices of a cluster with a topology, every message a flow on its route
// (network/stepped_collective.hpp). flow.hpp moves whole calls instead.
//
// Steps have the latency, links the payload, and the call the base of the protocol that the closed form chooses for
// the call (hardware::Protocol); operations without a closed form have the protocol with the most payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"

namespace orrery::simulate {

struct MessageFlows {
  Seconds time;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  std::uint64_t messages = 0, updates = 0;  // of the rates
  std::int64_t chunks = 1;                  // hierarchical
  std::string busiest = "none";             // "leaf0 to spine1"
  double busiest_use = 0;                   // part of `time` that the link needs for its bytes
  std::string note;                         // in_switch: what runs without switches, and why
};

// Why an algorithm does not carry out the operation here; empty if it does.
[[nodiscard]] std::string refusal_of(const hardware::Cluster& cluster, Collective collective,
                                     CollectiveAlgorithm algorithm, std::uint32_t groups = 1);

// `automatic`: the first of ring, direct, tree that is usual for the operation. `pair_bytes`: of an all_to_all with
// unequal parts, bytes from i to j at [i x members + j]. The cluster has a topology. `groups`: so many equal groups run
// the operation at once; rank r is in group r modulo groups. hierarchical: the schedule of the closed form, with
// `chunks`, or its own number if 0. in_switch: in the only switch, or up and down a tree of
// switches (network/switch_tree.hpp) within the limits of the topology.
[[nodiscard]] MessageFlows simulate_messages(const hardware::Cluster& cluster, Collective collective, Bytes bytes,
                                             CollectiveAlgorithm algorithm, std::vector<double> pair_bytes = {},
                                             std::uint32_t groups = 1, std::int64_t chunks = 0);

// The closed form (network/tree_time.hpp) of a collective among all devices in a tree of switches. Nothing: the
// cluster's topology has no in_switch, no such tree, no room in its buffers, or its switches do not have the operation.
struct SwitchTime {
  Seconds time, base, latency;  // the base of the library and the latency of links are parts of the time
  std::uint32_t chunks = 1;
};
[[nodiscard]] std::optional<SwitchTime> switch_time(const hardware::Cluster& cluster, Collective collective,
                                                    Bytes bytes);

}  // namespace orrery::simulate
