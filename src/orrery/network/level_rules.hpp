// Latency and payload of messages on the levels of a topology, by the protocol of the library
// (docs/models/topologies.md).
#pragma once

#include <string_view>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/stepped_collective.hpp"

namespace orrery::network {

struct LevelRules {
  Seconds base;  // of the library, once a call
  std::vector<LevelRule> levels;
};

// `protocol`: of the closed form's choice; empty: the one with the most payload. in_switch: a link class without
// figures of its own for switches has half of its latency on each link.
[[nodiscard]] LevelRules level_rules(const hardware::Cluster& cluster, std::string_view protocol,
                                     CollectiveAlgorithm algorithm);

// Of the messages of a schedule over the dimensions of a group, by phase and level.
struct PhaseRules {
  Seconds base;
  std::vector<std::vector<double>> latency, payload;  // as in LevelRule
  std::vector<char> both_ways;                        // by extent: its lines are rings of links
};
[[nodiscard]] PhaseRules phase_rules(const Fabric& fabric, const Schedule& schedule, const Group& group,
                                     std::string_view protocol);

}  // namespace orrery::network
