// The placement of a plan's ranks: rank = tp + tp_degree * (cp + cp_degree * (dp + dp_degree * pp)). Ranks fill the
// dimensions from the innermost out, device r = rank r, unless the plan pins groups to dimensions. Experts are
// distributed over the ranks of a stage: rank in stage = etp + etp_degree * (ep + ep_degree * copy).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/network/group.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::parallel {

// The groups that collectives run over.
enum class GroupKind : std::uint8_t {
  tp,            // tensor parallelism of a layer
  cp,            // context parallelism
  ep,            // ranks over which routed experts are distributed
  ep_node,       // the ranks of an ep group on one node (innermost dimension)
  ep_across,     // the ranks of an ep group at the same position of different nodes
  etp,           // tensor parallelism of a routed expert
  dp,            // ranks that hold the same dense weights: dp x cp
  shard,         // of those, ranks that share one sharded copy (the first cp x dp ranks: innermost)
  copies,        // ranks that hold the same shard of different copies
  expert_dp,     // ranks that hold the same routed experts
  embedding,     // first and last pipeline stage, which share a tied embedding
  mirror,        // stages i and pp - 1 - i, which hold each other's layers under DualPipe
  world,         // all ranks
  tables,        // ranks over which one copy of the embedding tables is sharded
  table_copies,  // ranks that hold the same part of different copies
  host,          // not a group: between a device and its second memory tier
};
inline constexpr std::size_t kGroupKinds = 16;

// All groups over which collectives inside a rank's blocks run.
struct SliceGroups {
  network::Group tp, cp, etp, ep;
  network::Group tables, table_copies, replicas;  // recommenders; replicas: all ranks with samples of their own
  network::Group uneven_ep;                       // if ep groups do not fill nodes evenly: all members of one
  friend bool operator==(const SliceGroups&, const SliceGroups&) = default;
};

struct Mesh {
  std::array<network::Group, kGroupKinds> groups;  // [GroupKind]; mirror: that of the outermost pair of stages
  std::vector<int> transfer_dimension;  // [stage]: outermost dimension crossed from stage i to i + 1 (last: to stage 0)

  [[nodiscard]] const network::Group& group(GroupKind kind) const { return groups[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] network::Group& group(GroupKind kind) { return groups[static_cast<std::size_t>(kind)]; }

  void set(const SliceGroups& slice);  // sets these and both halves of ep; dp = replicas
};

// The groups of `degree` ranks, `stride` apart, that the cluster's devices are divided into, as extents on its
// dimensions; of groups of different shapes, the slowest (slowest_group()).
[[nodiscard]] network::Group strided_group(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree);

// Whether the pinned groups fill the dimensions evenly: the groups pinned to a dimension fill it, or an even part of
// it, together, and the others fill the rest in rank order. If all groups are pinned, the outermost dimension has no
// limit: unused positions of inner dimensions belong to further members of the groups on it, which use its links.
[[nodiscard]] bool is_placed(const hardware::Cluster& cluster, const Plan& plan);

// Both require is_placed(cluster, plan).
[[nodiscard]] SliceGroups slice_groups(const hardware::Cluster& cluster, const Plan& plan);
[[nodiscard]] Mesh make_mesh(const hardware::Cluster& cluster, const Plan& plan);

}  // namespace orrery::parallel
