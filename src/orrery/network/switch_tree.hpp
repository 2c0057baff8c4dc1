// Collectives that switches take part in, up and down a tree of switches: a switch reduces what comes from below, or
// forwards it, and multicasts what comes from above. Every chunk on every link of the tree is a flow at max-min fair
// rates (flow_network.hpp).
//
//   all_reduce      up: the buffer, reduced in every switch                   down: the buffer
//   reduce_scatter  up: the buffer, reduced                                   down: the blocks of the devices below
//   all_gather      up: the blocks of the devices below                       down: all blocks but these
//   all_to_all      up: what the devices below send to others                 down: what others send to them
//   broadcast       up from the root's device: the buffer                     down to all others: the buffer
//   barrier         nothing but latency, both ways
//
// Chunks follow each other on a link. A switch starts with a chunk when all of it has arrived from below; it reduces at
// its rate, one chunk after the other, and keeps a chunk until it is sent on. The chunks that it has at once fit its
// buffer: children wait. Left out: the header of a message, credits that take time to return, the switch's own latency.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/stepped_collective.hpp"

namespace orrery::network {

struct SwitchTree {
  std::vector<std::uint32_t> nodes;   // of the topology; the root first, each node after its parent
  std::vector<std::uint32_t> parent;  // index into `nodes`; of the root: its own
  // Links to the parent, by index; the link back is the other direction of the cable. Chunks use them in turn.
  std::vector<std::vector<std::uint32_t>> up;
  std::vector<std::uint32_t> below;  // members in the part of the tree below the node, the node included
};

// The shallowest tree of switches with all the devices as leaves, and of these the one with the fewest links; `which`:
// of several such roots. Nothing: no switch leads to all of them without passing another device.
[[nodiscard]] std::optional<SwitchTree> switch_tree(const hardware::Topology& topology,
                                                    std::span<const std::uint32_t> devices, std::size_t which = 0);

struct TreeLimits {
  double buffer = 0;  // bytes of a switch; 0: no limit
  double rate = 0;    // bytes/s that a switch reduces, counted as they arrive; 0: as fast as they arrive
};

struct TreeCall {
  SwitchTree tree;
  Collective collective = Collective::all_reduce;
  double bytes = 0;        // of the whole buffer of a member
  std::uint32_t root = 0;  // broadcast: node of the topology
};

inline constexpr std::uint32_t kMostTreeChunks = 512;

// How many chunks the buffer allows, at least 1 and usually 64; 0: more than kMostTreeChunks would be needed.
[[nodiscard]] std::uint32_t tree_chunks(double bytes, const TreeLimits& limits);

// Bytes of a chunk up and down the link above node i of the tree; nothing: no message.
struct LinkBytes {
  std::optional<double> up, down;
};
[[nodiscard]] LinkBytes bytes_on(const TreeCall& call, std::size_t i, bool has_root_below, double chunk);
[[nodiscard]] bool reduces_upwards(Collective collective);

struct TreeChunks {
  std::uint32_t count = 1;
  double bytes = 0;          // of a chunk
  std::uint32_t window = 1;  // chunks that a switch has at once
  std::vector<bool> on_way;  // by node: a broadcast goes up through it, from the root's device to the top
};
[[nodiscard]] TreeChunks chunks_of(const TreeCall& call, const TreeLimits& limits);

// Why switches cannot carry out the operation; empty if they can.
[[nodiscard]] std::string tree_refusal(Collective collective);

// All calls start at 0 and share the links. `levels`: by level of the topology; `others`: of calls without switches
// (of run_collectives, routes without a seed, equal parts). Finish times are by call, those of `others` last.
struct TreeCalls {
  std::vector<TreeCall> trees;
  std::vector<SteppedCollective> others;
};
[[nodiscard]] SteppedTimes run_trees(hardware::Routes& routes, std::span<const LevelRule> levels,
                                     std::span<const LevelRule> others, const TreeCalls& calls,
                                     const TreeLimits& limits);

// Messages of a call without switches, all of which are held at once.
inline constexpr std::uint64_t kMostHeldMessages = 1'000'000;
[[nodiscard]] std::uint64_t message_count(const MemberSchedule& schedule);

}  // namespace orrery::network
