#include "orrery/parallel/mesh.hpp"

#include <algorithm>

#include "orrery/parallel/layout.hpp"

namespace orrery::parallel {

namespace {

// Outermost dimension that some rank of stage `stage` crosses to the same rank of stage `next`. Ranks of a stage are
// contiguous, so a block of digits is left unless both stages are within it; digits inside a stage are the same in
// both.
int dimension_crossed(const Layout& layout, std::int64_t ranks_per_stage, std::int64_t stage, std::int64_t next) {
  const std::int64_t first = std::min(stage, next) * ranks_per_stage;
  const std::int64_t last = (std::max(stage, next) + 1) * ranks_per_stage - 1;
  std::int64_t block = 1;
  int crossed = 0;
  for (const auto& digit : layout) {
    block *= digit.members;
    if (block > ranks_per_stage) { crossed = std::max(crossed, digit.dimension); }
    if (first / block == last / block) { return crossed; }
  }
  return outermost_dimension(layout);
}

SliceGroups groups_of_slice(const Layout& layout, const Plan& plan) {
  const auto group = [&](std::int64_t stride, std::int64_t degree) {
    return degree > 1 ? slowest_group(layout, stride, degree, plan.devices()) : network::Group{};
  };
  SliceGroups groups{group(1, plan.tp), group(plan.tp, plan.cp), group(1, plan.etp), {}, {}, {}, {}, {}};
  if (plan.ep > 1) { groups.ep = strided_group(layout, plan.etp, plan.ep); }
  if (!groups.ep.regular) {
    groups.ep = group(plan.etp, plan.ep);
    groups.uneven_ep = {{{outermost_dimension(layout), plan.ep}}, false};
  }
  if (plan.tables.sharding == workload::TableSharding::none) { return groups; }
  const std::int64_t ranks = plan.table_ranks();
  groups.tables = group(1, ranks);
  groups.table_copies = group(ranks, plan.stage_ranks() / ranks);
  groups.replicas = group(1, plan.stage_ranks());
  return groups;
}

}  // namespace

SliceGroups slice_groups(const hardware::Cluster& cluster, const Plan& plan) {
  return groups_of_slice(layout_of(cluster, plan), plan);
}

void Mesh::set(const SliceGroups& slice) {
  group(GroupKind::tp) = slice.tp;
  group(GroupKind::cp) = slice.cp;
  group(GroupKind::etp) = slice.etp;
  group(GroupKind::ep) = slice.ep;
  group(GroupKind::tables) = slice.tables;
  group(GroupKind::table_copies) = slice.table_copies;
  if (!slice.replicas.extents.empty()) { group(GroupKind::dp) = slice.replicas; }
  if (!slice.uneven_ep.extents.empty()) {  // dispatch once per node is one exchange between all of them
    const bool on_node = slice.uneven_ep.extents.back().dimension == 0;
    group(on_node ? GroupKind::ep_node : GroupKind::ep_across) = slice.uneven_ep;
    return;
  }
  for (const auto& extent : slice.ep.extents) {
    auto& part = group(extent.dimension == 0 ? GroupKind::ep_node : GroupKind::ep_across);
    part.extents.push_back(extent);
    part.regular = slice.ep.regular;
  }
}

bool is_placed(const hardware::Cluster& cluster, const Plan& plan) {
  return !plan.placement.any() || placed_layout(cluster, plan).has_value();
}

network::Group strided_group(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree) {
  std::int64_t ranks = 1;
  for (const auto& dimension : cluster.dimensions) { ranks *= dimension.size; }
  return slowest_group(rank_order(cluster), stride, degree, ranks);
}

Mesh make_mesh(const hardware::Cluster& cluster, const Plan& plan) {
  Mesh mesh;
  const Layout layout = layout_of(cluster, plan);
  const std::int64_t stage_ranks = plan.stage_ranks();
  const auto set = [&](GroupKind kind, std::int64_t stride, std::int64_t degree) {
    if (degree > 1) { mesh.group(kind) = slowest_group(layout, stride, degree, plan.devices()); }
  };
  mesh.set(groups_of_slice(layout, plan));
  set(GroupKind::dp, plan.tp, plan.replicas());
  set(GroupKind::shard, plan.tp, plan.shards());
  set(GroupKind::copies, plan.tp * plan.shards(), plan.sharded_copies());
  set(GroupKind::expert_dp, plan.etp * plan.ep, plan.expert_replicas());
  set(GroupKind::world, 1, plan.devices());
  if (plan.pp > 1) {
    const network::Group ends{{{dimension_crossed(layout, stage_ranks, 0, plan.pp - 1), 2}}, true};
    mesh.group(GroupKind::embedding) = ends;
    if (plan.schedule == ScheduleKind::dualpipe) { mesh.group(GroupKind::mirror) = ends; }
  }
  mesh.transfer_dimension.reserve(static_cast<std::size_t>(plan.pp));
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    mesh.transfer_dimension.push_back(dimension_crossed(layout, stage_ranks, stage, (stage + 1) % plan.pp));
  }
  return mesh;
}

}  // namespace orrery::parallel
