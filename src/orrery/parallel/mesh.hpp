// Where the ranks of a plan sit: rank = tp + tp_degree * (cp + cp_degree * (dp + dp_degree * pp)). Ranks fill the
// dimensions from the innermost out, device r = rank r, unless the plan pins groups to dimensions. Experts lie over the
// ranks of a stage: rank in stage = etp + etp_degree * (ep + ep_degree * copy).
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
  tp,            // slices of a layer
  cp,            // parts of a sequence
  ep,            // ranks that share out the routed experts
  ep_node,       // of those, the ones on one node (innermost dimension)
  ep_across,     // and those in the same place of different nodes
  etp,           // slices of a routed expert
  dp,            // ranks that hold the same dense weights: dp x cp
  shard,         // of those, the ones that share a sharded copy (the first cp x dp ranks: innermost)
  copies,        // and those that hold the same shard of different copies
  expert_dp,     // ranks that hold the same routed experts
  embedding,     // first and last pipeline stage, which share tied embeddings
  mirror,        // stages i and pp - 1 - i, which hold each other's layers under DualPipe
  world,         // everybody
  tables,        // ranks that share out one copy of the embedding tables
  table_copies,  // and those that hold the same part of different copies
  host,          // no group: between a device and its second memory tier
};
inline constexpr std::size_t kGroupKinds = 16;

// The groups that a rank's own work meets others in: all that its blocks' collectives run over.
struct SliceGroups {
  network::Group tp, cp, etp, ep;
  network::Group tables, table_copies, replicas;  // of a recommender; replicas: everybody with samples of its own
  friend bool operator==(const SliceGroups&, const SliceGroups&) = default;
};

struct Mesh {
  std::array<network::Group, kGroupKinds> groups;  // [GroupKind]; mirror: that of the outermost pair of stages
  std::vector<int> transfer_dimension;  // [stage]: outermost dimension crossed from stage i to i + 1 (last: to stage 0)

  [[nodiscard]] const network::Group& group(GroupKind kind) const { return groups[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] network::Group& group(GroupKind kind) { return groups[static_cast<std::size_t>(kind)]; }

  void set(const SliceGroups& slice);  // and the two halves of ep; replicas as dp
};

// The ranks first, first + stride, ..., degree of them, as extents on the cluster's dimensions.
// Irregular when they do not fill blocks of a dimension evenly.
[[nodiscard]] network::Group strided_group(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree);

// Whether what a plan pins fills the dimensions evenly: the groups pinned to a dimension fill it, or an even part of
// it, together, and the others in rank order what is left. Where all groups are pinned, the outermost dimension takes
// any: places that inner dimensions keep free belong to further members of the groups on it, which use its links.
[[nodiscard]] bool is_placed(const hardware::Cluster& cluster, const Plan& plan);

// Both need is_placed(cluster, plan).
[[nodiscard]] SliceGroups slice_groups(const hardware::Cluster& cluster, const Plan& plan);
[[nodiscard]] Mesh make_mesh(const hardware::Cluster& cluster, const Plan& plan);

}  // namespace orrery::parallel
