#include "orrery/parallel/mesh.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::parallel {

namespace {

network::Group irregular_group(const hardware::Cluster& cluster, std::int64_t degree) {
  return {{{static_cast<int>(cluster.dimensions.size()) - 1, degree}}, false};
}

}  // namespace

network::Group strided_group(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree) {
  const auto irregular = [&cluster, all = degree] { return irregular_group(cluster, all); };
  network::Group group;
  std::int64_t block = 1;  // devices inside one coordinate of the current dimension
  for (std::size_t d = 0; d < cluster.dimensions.size() && degree > 1; ++d) {
    block *= cluster.dimensions[d].size;
    if (stride >= block) {
      if (stride % block != 0) { return irregular(); }
      continue;
    }
    if (block % stride != 0) { return irregular(); }
    const std::int64_t here = std::min(degree, block / stride);
    const bool even = degree % here == 0 && block % (stride * here) == 0;
    if (!even) { return irregular(); }
    if (here > 1) { group.extents.push_back({static_cast<int>(d), here}); }
    degree /= here;
    stride *= here;
  }
  return group;
}

namespace {

// Outermost dimension that some rank of stage i crosses on its way to the same rank of stage `next`. Ranks of a stage
// are contiguous, so a block of a dimension is left unless both stages lie within one.
int dimension_crossed(const hardware::Cluster& cluster, std::int64_t ranks_per_stage, std::int64_t stage,
                      std::int64_t next) {
  const std::int64_t first = std::min(stage, next) * ranks_per_stage;
  const std::int64_t last = (std::max(stage, next) + 1) * ranks_per_stage - 1;
  std::int64_t block = 1;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    block *= cluster.dimensions[d].size;
    if (first / block == last / block) { return static_cast<int>(d); }
  }
  return static_cast<int>(cluster.dimensions.size()) - 1;
}

}  // namespace

Mesh make_mesh(const hardware::Cluster& cluster, const Plan& plan) {
  Mesh mesh;
  const std::int64_t stage_ranks = plan.stage_ranks();
  const auto set = [&](GroupKind kind, std::int64_t stride, std::int64_t degree) {
    if (degree > 1) { mesh.group(kind) = strided_group(cluster, stride, degree); }
  };
  set(GroupKind::tp, 1, plan.tp);
  set(GroupKind::cp, plan.tp, plan.cp);
  set(GroupKind::etp, 1, plan.etp);
  set(GroupKind::ep, plan.etp, plan.ep);
  for (const auto& extent : mesh.group(GroupKind::ep).extents) {
    auto& part = mesh.group(extent.dimension == 0 ? GroupKind::ep_node : GroupKind::ep_across);
    part.extents.push_back(extent);
    part.regular = mesh.group(GroupKind::ep).regular;
  }
  set(GroupKind::dp, plan.tp, plan.replicas());
  set(GroupKind::shard, plan.tp, plan.shards());
  set(GroupKind::copies, plan.tp * plan.shards(), plan.sharded_copies());
  set(GroupKind::expert_dp, plan.etp * plan.ep, plan.expert_replicas());
  set(GroupKind::world, 1, plan.devices());
  if (plan.pp > 1) {
    const network::Group ends{{{dimension_crossed(cluster, stage_ranks, 0, plan.pp - 1), 2}}, true};
    mesh.group(GroupKind::embedding) = ends;
    if (plan.schedule == ScheduleKind::dualpipe) { mesh.group(GroupKind::mirror) = ends; }
  }
  mesh.transfer_dimension.reserve(static_cast<std::size_t>(plan.pp));
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    mesh.transfer_dimension.push_back(dimension_crossed(cluster, stage_ranks, stage, (stage + 1) % plan.pp));
  }
  return mesh;
}

}  // namespace orrery::parallel
