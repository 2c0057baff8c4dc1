// Collectives as schedules, and what a schedule costs.
//
// A schedule is data: phases of steps, each step a pattern of transfers between positions of a group. The closed-form
// price below and the step-by-step expansion (expand.hpp: every transfer, with its blocks and whether it is reduced)
// both read the same phases, so they cannot drift apart. Formulas, sources and limits: docs/models/collectives.md.
//
// Sizes follow nccl-tests: the whole buffer (all_reduce, broadcast: the vector; all_gather, reduce_scatter,
// all_to_all: n shards).
//
// Along a mesh, a ring or chain stands for as many of them as each member has links, with a part of the buffer each;
// along a ring, for one in each direction. Both use every link of a member equally, so the bytes of a member go through
// the sum of its links (hardware::NetworkDimension::bandwidth_among).
//
// Left out: contention with other traffic, congestion inside a fabric, message rate of a NIC, several channels with
// different paths, stragglers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/inline_list.hpp"

namespace orrery::network {

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast };

// Of an extent of a group. `flat_ring` is of all extents together: one ring through all members, as libraries lay it.
enum class Algorithm : std::uint8_t { automatic, ring, tree, direct, in_switch, flat_ring };

// Who sends to whom in each step of a phase, among the n members along one dimension.
enum class Pattern : std::uint8_t {
  ring,         // i -> i + 1 (mod n); all_to_all: the shorter way round
  flat_ring,    // along a ring through all extents: what of it goes along this dimension
  chain,        // i -> i + 1, from the root on: every hop is another link
  scatter,      // the root's shards to their owners: along the chain (n - 1 steps), or all at once (1 step)
  tree_up,      // children -> parents of a double binary tree, level by level
  tree_down,    // parents -> children
  all_pairs,    // everyone -> everyone else at once
  exchange,     // the same as pairs of a send and a receive
  switch_up,    // everyone -> the switch, which reduces and hands each member its shard
  switch_down,  // each member's shard -> the switch -> everyone
  multicast,    // the root -> the switch -> everyone
};

// Steps of one pattern along one dimension. Byte counts are those of the busiest member, its peers together, and are
// means over the steps where steps differ (all_to_all along a ring).
struct Phase {
  Pattern pattern = Pattern::ring;
  bool reduces = false;      // arriving data is added to what the member has; otherwise it is stored
  bool one_way = false;      // a tree between two members: each half has a direction of the ports to itself
  bool beside = false;       // the same steps as the phase before, on another dimension
  int dimension = 0;         // index into Cluster::dimensions
  std::int64_t members = 0;  // positions along that dimension
  std::int64_t steps = 0;    // one after another for one chunk
  Bytes sent_per_step;       // of the whole buffer; a chunk's share is 1/chunks of it
  Bytes received_per_step;
  Bytes reduced_per_step;
  Bytes own;          // of the member's own shard, which passes the kernel besides, once (Protocol::own_share)
  double hops = 1.0;  // part of the way round that goes along this dimension: < 1 in a flat ring
};

inline constexpr int kMaxPhases = 2 * kMaxExtents;  // in along every dimension, and out again
inline constexpr std::int64_t kMaxChunks = 256;

struct Schedule {
  Collective collective = Collective::all_reduce;
  Bytes bytes;                           // nccl-tests size
  InlineList<Phase, kMaxPhases> phases;  // one after another for one chunk; empty: nothing to do, or no such algorithm
  std::int64_t chunks = 1;               // the buffer is cut into so many chunks that follow each other
};

// One algorithm per extent of a group, innermost first. Extents beyond the group's are ignored.
using Recipe = std::array<Algorithm, kMaxExtents>;

// The schedule of `recipe` for a group, with one chunk. `automatic` is not an algorithm here. Combinations that do not
// exist give an empty phase list: tree reaches only all_reduce and broadcast, and only on the outermost extent.
[[nodiscard]] Schedule make_schedule(Collective collective, const Recipe& recipe, Bytes bytes, const Group& group);

// The same `algorithm` on every extent; `tree` on the outermost one and rings inside. A recipe that has `flat_ring` on
// its first extent is one of all extents; it reaches all_reduce, reduce_scatter and all_gather.
[[nodiscard]] Schedule make_schedule(Collective collective, Algorithm algorithm, Bytes bytes, const Group& group);

// The extents that carry traffic: those with more than one member; for an irregular group its outermost dimension
// with all members.
[[nodiscard]] InlineList<Extent, kMaxExtents> effective_extents(const Group& group);

// The time of one call, taken apart.
struct Price {
  Seconds time;       // = base + latency + bandwidth + reduction
  Seconds base;       // launch and synchronisation, once
  Seconds latency;    // per-step latencies
  Seconds bandwidth;  // bytes over links
  Seconds reduction;  // arithmetic on arriving data, where it is slower than the link
  Algorithm algorithm = Algorithm::ring;
  std::string_view protocol;  // name in the outermost link class; empty for a group of one
  std::int64_t chunks = 1;
};

// Which of a protocol's constants a step takes.
enum class StepKind : std::uint8_t { ring, tree, in_switch, exchange };
inline constexpr std::size_t kStepKinds = 4;
[[nodiscard]] StepKind kind_of(Pattern pattern);

struct StepCost {
  Seconds base;                   // once per collective
  Seconds step;                   // once per step
  double seconds_per_byte = 0.0;  // payload through a device's port, one direction; infinite: this cannot be done
  double own_share = 0.0;         // of Phase::own, at the same rate
  double most_bytes = 0.0;        // of a step for which the library takes the protocol
};

struct Shape;

// Through how many of a node's ports the library's rings and trees leave it, where they meet several of its devices.
enum class WaysOut : std::uint8_t {
  all_ports,  // each device's share of the ports is a way out, in turn
  one_port,   // one, unless there are two nodes only: what libraries of 2020 to 2022 are seen to do
};

// Prices collectives on one cluster. Keeps a reference: the cluster must outlive it and stay as it is.
class Fabric {
 public:
  explicit Fabric(const hardware::Cluster& cluster, WaysOut ways_out = WaysOut::all_ports);

  // The cheapest of the algorithms that collective libraries offer (or the given one), over every protocol and chunk
  // count. A group of one, and a call without bytes, cost nothing; an algorithm that the group's dimensions or the
  // collective do not have costs infinite time.
  [[nodiscard]] Price price(Collective collective, Bytes bytes, const Group& group,
                            Algorithm algorithm = Algorithm::automatic) const;

  // The schedule that price() chose, chunks included.
  [[nodiscard]] Schedule schedule(Collective collective, Bytes bytes, const Group& group,
                                  Algorithm algorithm = Algorithm::automatic) const;

  // What a given schedule costs: with its own chunk count, and the cheapest protocol.
  [[nodiscard]] Price price(const Schedule& schedule) const;

  // One message between two devices that differ along `dimension` (and perhaps inner ones).
  [[nodiscard]] Seconds transfer(Bytes bytes, int dimension) const;

  // What a step costs among `members` of a dimension under a protocol, by index into protocols().
  [[nodiscard]] StepCost step_cost(StepKind kind, int dimension, std::size_t protocol, std::int64_t members) const {
    const auto d = static_cast<std::size_t>(dimension);
    StepCost cost = costs_[(d * names_.size() + protocol) * kStepKinds + static_cast<std::size_t>(kind)];
    if (own_links_[d] != 0) { cost.seconds_per_byte *= slowdown(dimension, members); }
    return cost;
  }

  // How many times a port's even part of what leaves a node the port that carries most has to; 1 but for one_port.
  // Of the group's own traffic where every device has a port to itself; where devices share ports all groups of a node
  // are taken to meet on one. The law of docs/models/collectives.md#single-port-per-node.
  [[nodiscard]] double crowding(const Shape& shape) const;

  // Seconds that adding one arriving byte takes; 0 where the cluster does not say.
  [[nodiscard]] double seconds_per_reduced_byte() const { return seconds_per_reduced_byte_; }

  // Names of every protocol of the cluster's link classes. Where a link class lacks one, its widest stands in.
  [[nodiscard]] const std::vector<std::string_view>& protocols() const { return names_; }

  [[nodiscard]] const hardware::Cluster& cluster() const { return cluster_; }

 private:
  using Extents = InlineList<Extent, kMaxExtents>;
  using Recipes = InlineList<Recipe, 6>;
  struct Candidate;
  struct Choice {
    Recipe recipe{};
    Price price;
  };

  // Where devices are joined by links of their own, few members cannot use all of them.
  [[nodiscard]] double slowdown(int dimension, std::int64_t members) const;
  [[nodiscard]] bool feasible(Algorithm algorithm, int dimension) const;
  [[nodiscard]] Algorithm plain(int dimension) const;
  [[nodiscard]] bool offers_flat_ring(Collective collective, const Extents& extents) const;
  [[nodiscard]] bool offers_tree(Collective collective, const Extent& outermost) const;
  [[nodiscard]] Recipes named_recipe(const Extents& extents, Algorithm asked) const;
  [[nodiscard]] Recipes recipes(Collective collective, const Extents& extents, Algorithm asked) const;
  bool improve(const Shape& shape, std::int64_t chunks, Candidate& best) const;
  [[nodiscard]] Price explained(const Candidate& candidate, Algorithm algorithm) const;
  [[nodiscard]] Choice cheapest(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const;

  const hardware::Cluster& cluster_;
  WaysOut ways_out_;
  std::vector<std::string_view> names_;
  std::vector<StepCost> costs_;  // [(dimension * names + protocol) * kStepKinds + kind]
  std::vector<char> owns_;       // [dimension * names + protocol]: the link class has that protocol
  std::vector<char> own_links_;  // [dimension]: a mesh or a ring
  double seconds_per_reduced_byte_ = 0.0;
};

}  // namespace orrery::network
