// Collectives as schedules.
//
// A schedule is data: phases of steps along one dimension each. The steps of a phase are those of a member schedule
// (member_schedule.hpp): line_schedule() says which. The closed-form price (fabric.hpp) needs the figures of the phase
// only, which follow from it (schedule_test.cpp compares them); composition.hpp has the single messages. Formulas,
// sources and limits: docs/models/collectives.md.
//
// Sizes follow nccl-tests: the whole buffer (all_reduce, broadcast: the vector; all_gather, reduce_scatter,
// all_to_all: n shards).
//
// Along a mesh, one ring or chain of the schedule represents as many rings as each member has links, each with a part
// of the buffer; along a ring, one in each direction. Both use every link of a member equally, so the bytes of a member
// are divided by the sum of the bandwidths of its links (hardware::NetworkDimension::bandwidth_among).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/inline_list.hpp"
#include "orrery/network/member_schedule.hpp"

namespace orrery::network {

// The senders and receivers in each step of a phase, among the n members along one dimension.
enum class Pattern : std::uint8_t {
  ring,         // i -> i + 1 (mod n); all_to_all: along the shorter direction
  flat_ring,    // the hops of a ring through all extents that are along this dimension
  chain,        // i -> i + 1, starting at the root: every hop uses another link
  scatter,      // the root's shards to their owners: along the chain (n - 1 steps), or all at once (1 step)
  tree_up,      // children -> parents of a double binary tree, level by level
  tree_down,    // parents -> children
  all_pairs,    // every member -> every other member at once
  exchange,     // the same as pairwise sends and receives (all_to_all)
  switch_up,    // every member -> the switch, which reduces and sends each member its shard
  switch_down,  // each member's shard -> the switch -> every member
  multicast,    // the root -> the switch -> every member
};

// Steps of one pattern along one dimension. Byte counts are those of the busiest member to or from all its peers; if
// steps differ (all_to_all along a ring), they are means over the steps.
struct SchedulePhase {
  Pattern pattern = Pattern::ring;
  bool reduces = false;      // arriving data is added to what the member has; otherwise it is stored
  bool one_way = false;      // a tree between two members: each half of the buffer uses one direction of the ports only
  bool concurrent = false;   // the same steps as the previous phase, at the same time on another dimension
  int dimension = 0;         // index into Cluster::dimensions
  std::int64_t members = 0;  // positions along that dimension
  std::int64_t steps = 0;    // one after another for one chunk
  Bytes sent_per_step;       // of the whole buffer; a chunk's share is 1/chunks of it
  Bytes received_per_step;
  Bytes reduced_per_step;
  Bytes own;          // of the member's own shard, which the kernel also copies, once (Protocol::own_share)
  double hops = 1.0;  // fraction of the ring's hops that are along this dimension: < 1 in a flat ring
};

inline constexpr int kMaxPhases = 2 * kMaxExtents;  // inwards along every dimension, and outwards again
inline constexpr std::int64_t kMaxChunks = 256;

struct Schedule {
  Collective collective = Collective::all_reduce;
  Bytes bytes;                                   // nccl-tests size
  InlineList<SchedulePhase, kMaxPhases> phases;  // one after another for one chunk; empty: one member, or no such
                                                 // algorithm
  std::int64_t chunks = 1;                       // the buffer is cut into so many chunks that follow each other
};

// One algorithm per extent of a group, innermost first. Extents beyond the group's are ignored.
using Recipe = std::array<CollectiveAlgorithm, kMaxExtents>;

// The schedule of `recipe` for a group, with one chunk. `automatic` is not an algorithm here. Combinations that do not
// exist give an empty phase list: reduce, gather, scatter and barrier have no schedule; tree is for all_reduce and
// broadcast only, and only on the outermost extent; halving_doubling exists as a member schedule only
// (member_schedule.hpp).
[[nodiscard]] Schedule make_schedule(Collective collective, const Recipe& recipe, Bytes bytes, const Group& group);

// The same `algorithm` on every extent; for `tree`, the outermost extent only, with rings inside. A recipe with
// `flat_ring` on its first extent applies to all extents; it is valid for all_reduce, reduce_scatter and all_gather.
[[nodiscard]] Schedule make_schedule(Collective collective, CollectiveAlgorithm algorithm, Bytes bytes,
                                     const Group& group);

// What the members of a line along the phase's dimension do. Of a flat ring: the ring with all members; `members` is
// then that of one extent.
[[nodiscard]] MemberSchedule line_schedule(Collective collective, const SchedulePhase& phase);

// The steps of line_schedule() that belong to the phase: an all-reduce by tree has one phase for each direction. A
// switch takes two steps for one of the closed form, because data passes it while it arrives.
struct LineSteps {
  std::uint32_t first = 0, count = 0;
};
[[nodiscard]] LineSteps line_steps(Collective collective, const SchedulePhase& phase);

// The extents that have traffic: those with more than one member; for an irregular group its outermost dimension
// with all members.
[[nodiscard]] InlineList<Extent, kMaxExtents> effective_extents(const Group& group);

}  // namespace orrery::network
