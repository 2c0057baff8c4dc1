// The closed form of one collective on a tree of switches that has its links for itself (switch_tree.hpp has the rules
// and what is left out).
//
// The buffer of a member is cut into K chunks (tree_chunks). A chunk passes stages: each link of the tree, for the time
// of its bytes, after the latency of the link; and each switch that reduces, for the time of the arriving bytes at its
// rate. A stage has one chunk at a time, in their order. The end of a chunk at a stage is
//
//   end(k, stage) = max(end(k, stages before) + latency, end(k - 1, stage)) + time of the stage
//
// with two additions: the chunks of c parallel cables go by turns, so that a chunk follows the one c before it; and
// where a buffer holds w chunks, a child starts chunk k when the switch above has sent chunk k - w on. The call ends
// with the last chunk at the last device. Without buffers and parallel cables that is, over all ways from a device up
// and down to another one,
//
//   time = max over ways (latencies + sum of stages + (K - 1) x longest stage)
//
// O(K x nodes of the tree) time, O(K x nodes) memory.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "orrery/network/switch_tree.hpp"

namespace orrery::network {

struct TreeTime {
  double time = 0;                                        // seconds, without the base of the library
  double latency = 0;                                     // seconds of it, up and down the deepest way
  std::vector<std::pair<std::uint32_t, double>> carried;  // link of the topology, bytes; ascending links
};

// `levels`: by level of the topology. The buffer holds the operation: tree_chunks() is not 0.
[[nodiscard]] TreeTime tree_time(const hardware::Topology& topology, std::span<const LevelRule> levels,
                                 const TreeLimits& limits, const TreeCall& call);

}  // namespace orrery::network
