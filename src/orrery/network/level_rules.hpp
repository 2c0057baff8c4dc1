// Latency and payload of messages on the levels of a topology, by the protocol of the library
// (docs/models/topologies.md).
#pragma once

#include <string_view>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
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

}  // namespace orrery::network
