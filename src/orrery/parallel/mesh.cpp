#include "orrery/parallel/mesh.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "orrery/core/error.hpp"

namespace orrery::parallel {

namespace {

constexpr auto kMostDimensions = static_cast<std::size_t>(network::kMaxExtents);

// Devices of a job in rank order: rank = x0 + n0 (x1 + n1 (x2 + ...)), where digit i is the position on a dimension.
using Layout = network::InlineList<network::Extent, 5 * network::kMaxExtents>;

Layout rank_order(const hardware::Cluster& cluster) {
  Layout layout;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    layout.push_back({static_cast<int>(d), cluster.dimensions[d].size});
  }
  return layout;
}

// A degree of a plan, and the dimension it is pinned to.
struct Pinned {
  std::int64_t degree = 1;
  int dimension = Placement::kByRank;
};

std::array<Pinned, 4> in_rank_order(const Plan& plan) {
  const Placement& at = plan.placement;
  return {{{plan.tp, at.tp}, {plan.cp, at.cp}, {plan.dp, at.dp}, {plan.pp, at.pp}}};
}

// Assigns devices to the groups of a plan that pins some of them.
class PinnedLayout {
 public:
  explicit PinnedLayout(const hardware::Cluster& cluster) : dimensions_(cluster.dimensions.size()) {
    for (std::size_t d = 0; d < dimensions_; ++d) { room_[d] = cluster.dimensions[d].size; }
  }

  // Nothing if a group does not fill its dimensions evenly.
  std::optional<Layout> of(const Plan& plan) {
    const auto groups = in_rank_order(plan);
    const bool all = std::all_of(groups.begin(), groups.end(), [](const Pinned& g) { return is_fixed(g); });
    for (const Pinned& group : groups) {
      if (group.degree > 1 && group.dimension >= 0 && !take(group, all)) { return std::nullopt; }
    }
    Layout layout;
    for (const Pinned& group : groups) {
      if (group.degree > 1 && group.dimension >= 0) { layout.push_back({group.dimension, group.degree}); }
      if (!is_fixed(group) && !fill(group.degree, layout)) { return std::nullopt; }
    }
    return layout;
  }

 private:
  static bool is_fixed(const Pinned& group) { return group.degree == 1 || group.dimension >= 0; }

  // If all groups are pinned, unused positions of inner dimensions belong to the groups on the outermost dimension,
  // whose size then does not limit them: its links are what they use.
  bool take(const Pinned& group, bool all_pinned) {
    const auto d = static_cast<std::size_t>(group.dimension);
    if (d >= dimensions_) { return false; }
    if (all_pinned && d + 1 == dimensions_) { return true; }
    if (room_[d] % group.degree != 0) { return false; }
    room_[d] /= group.degree;
    return true;
  }

  // The unused part of the dimensions, from the innermost out.
  bool fill(std::int64_t degree, Layout& layout) {
    for (std::size_t d = 0; d < dimensions_ && degree > 1; ++d) {
      const std::int64_t here = std::min(degree, room_[d]);
      if (here <= 1) { continue; }
      if (degree % here != 0 || room_[d] % here != 0) { return false; }
      layout.push_back({static_cast<int>(d), here});
      room_[d] /= here;
      degree /= here;
    }
    return degree == 1;
  }

  std::size_t dimensions_;
  std::array<std::int64_t, kMostDimensions> room_{};  // unused positions of each dimension
};

Layout layout_of(const hardware::Cluster& cluster, const Plan& plan) {
  if (!plan.placement.any()) { return rank_order(cluster); }
  const auto layout = PinnedLayout(cluster).of(plan);
  ORRERY_ASSERT(layout);
  return *layout;
}

int outermost(const Layout& layout) {
  int found = 0;
  for (const auto& digit : layout) { found = std::max(found, digit.dimension); }
  return found;
}

// A group's members along each dimension, innermost first.
network::Group group_of(const std::array<std::int64_t, kMostDimensions>& members) {
  network::Group group;
  for (std::size_t d = 0; d < members.size(); ++d) {
    if (members[d] > 1) { group.extents.push_back({static_cast<int>(d), members[d]}); }
  }
  return group;
}

network::Group strided(const Layout& layout, std::int64_t stride, std::int64_t degree) {
  const auto irregular = [&layout, all = degree] { return network::Group{{{outermost(layout), all}}, false}; };
  std::array<std::int64_t, kMostDimensions> members;
  members.fill(1);
  std::int64_t block = 1;  // devices inside one value of the current digit
  for (std::size_t i = 0; i < layout.size() && degree > 1; ++i) {
    block *= layout[i].members;
    if (stride >= block) {
      if (stride % block != 0) { return irregular(); }
      continue;
    }
    if (block % stride != 0) { return irregular(); }
    const std::int64_t here = std::min(degree, block / stride);
    const bool even = degree % here == 0 && block % (stride * here) == 0;
    if (!even) { return irregular(); }
    members[static_cast<std::size_t>(layout[i].dimension)] *= here;
    degree /= here;
    stride *= here;
  }
  return group_of(members);
}

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
  return outermost(layout);
}

SliceGroups groups_of_slice(const Layout& layout, const Plan& plan) {
  const auto group = [&](std::int64_t stride, std::int64_t degree) {
    return degree > 1 ? strided(layout, stride, degree) : network::Group{};
  };
  SliceGroups groups{
      group(1, plan.tp), group(plan.tp, plan.cp), group(1, plan.etp), group(plan.etp, plan.ep), {}, {}, {}};
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
  for (const auto& extent : slice.ep.extents) {
    auto& part = group(extent.dimension == 0 ? GroupKind::ep_node : GroupKind::ep_across);
    part.extents.push_back(extent);
    part.regular = slice.ep.regular;
  }
}

bool is_placed(const hardware::Cluster& cluster, const Plan& plan) {
  return !plan.placement.any() || PinnedLayout(cluster).of(plan).has_value();
}

network::Group strided_group(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree) {
  return strided(rank_order(cluster), stride, degree);
}

Mesh make_mesh(const hardware::Cluster& cluster, const Plan& plan) {
  Mesh mesh;
  const Layout layout = layout_of(cluster, plan);
  const std::int64_t stage_ranks = plan.stage_ranks();
  const auto set = [&](GroupKind kind, std::int64_t stride, std::int64_t degree) {
    if (degree > 1) { mesh.group(kind) = strided(layout, stride, degree); }
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
