// Groups and transfers, compared with members enumerated one by one.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/calls.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::mesh_test {
namespace {

using Coordinates = std::vector<std::int64_t>;

Coordinates coordinates(const hardware::Cluster& cluster, std::int64_t device) {
  Coordinates list;
  for (const auto& dimension : cluster.dimensions) {
    list.push_back(device % dimension.size);
    device /= dimension.size;
  }
  return list;
}

// Outermost dimension along which two devices differ; 0 when they do not.
int outermost_difference(const hardware::Cluster& cluster, std::int64_t a, std::int64_t b) {
  const auto one = coordinates(cluster, a), other = coordinates(cluster, b);
  int outermost = 0;
  for (std::size_t d = 0; d < one.size(); ++d) {
    if (one[d] != other[d]) { outermost = static_cast<int>(d); }
  }
  return outermost;
}

// Members of a group on each dimension, if its blocks of every dimension have equally many: nodes as many devices,
// blocks of nodes as many nodes, and so on.
std::optional<std::vector<std::int64_t>> widths(const hardware::Cluster& cluster, std::set<std::int64_t> blocks) {
  std::vector<std::int64_t> list;
  for (const auto& dimension : cluster.dimensions) {
    std::map<std::int64_t, std::int64_t> inside;
    for (const auto block : blocks) { ++inside[block / dimension.size]; }
    blocks.clear();
    for (const auto& [outer, count] : inside) {
      if (count != inside.begin()->second) { return std::nullopt; }
      blocks.insert(outer);
    }
    list.push_back(inside.begin()->second);
  }
  return list;
}

// The extents of the slowest of all groups {base + i stride} of a plan (bases: multiples of degree x stride plus less
// than stride), that with most members on the outermost dimension; nothing if some are uneven.
std::optional<std::vector<network::Extent>> enumerated(const hardware::Cluster& cluster, std::int64_t stride,
                                                       std::int64_t degree) {
  std::vector<std::int64_t> slowest;  // from outside
  for (std::int64_t block = 0; block < cluster.devices; block += stride * degree) {
    for (std::int64_t base = block; base < block + stride; ++base) {
      std::set<std::int64_t> members;
      for (std::int64_t i = 0; i < degree; ++i) { members.insert(base + i * stride); }
      const auto shape = widths(cluster, members);
      if (!shape) { return std::nullopt; }
      slowest = std::max(slowest, std::vector<std::int64_t>(shape->rbegin(), shape->rend()));
    }
  }
  std::vector<network::Extent> extents;
  for (std::size_t d = 0; d < slowest.size(); ++d) {
    const std::int64_t width = slowest[slowest.size() - 1 - d];
    if (width > 1) { extents.push_back({static_cast<int>(d), width}); }
  }
  return extents;
}

// Whether the ends of blocks of every dimension divide no group, or into halves. Other groups are irregular even where
// all of them happen to be even.
bool ends_divide_groups_evenly(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree) {
  const std::int64_t span = stride * degree;
  std::int64_t block = 1;
  for (std::size_t d = 0; d + 1 < cluster.dimensions.size(); ++d) {
    block *= cluster.dimensions[d].size;
    const bool divides = block % span == 0 || span % block == 0 || (block > span && 2 * block % span == 0);
    if (!divides || (block % stride != 0 && stride % block != 0)) { return false; }
  }
  return true;
}

struct Layout {
  hardware::Cluster cluster;
  Plan plan;
};

Layout any_layout() {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  Layout layout;
  layout.plan.tp = draw(1, 9);
  layout.plan.cp = draw(1, 4);
  layout.plan.dp = draw(1, 9);
  layout.plan.pp = draw(1, 9);
  test::spread_experts(draw, layout.plan);
  layout.plan.shard = test::any_flag(draw) ? layout.plan.cp : layout.plan.dp;
  layout.cluster = test::any_cluster(draw, layout.plan.devices());
  return layout;
}

void expect_enumerated(const hardware::Cluster& cluster, std::int64_t stride, std::int64_t degree) {
  const network::Group group = strided_group(cluster, stride, degree);
  const auto extents = enumerated(cluster, stride, degree);
  RC_ASSERT(group.size() == degree);
  if (ends_divide_groups_evenly(cluster, stride, degree)) { RC_ASSERT(group.regular == extents.has_value()); }
  if (group.regular) {
    RC_ASSERT(extents.has_value());
    RC_ASSERT(std::equal(group.extents.begin(), group.extents.end(), extents->begin(), extents->end()));
  } else {
    RC_ASSERT(group.extents.back().dimension == static_cast<int>(cluster.dimensions.size()) - 1);
  }
}

RC_GTEST_PROP(Mesh, strided_groups_have_the_shape_of_their_slowest, ()) {
  const Layout layout = any_layout();
  const Plan& plan = layout.plan;
  expect_enumerated(layout.cluster, 1, plan.tp);
  expect_enumerated(layout.cluster, plan.tp, plan.dp);
  expect_enumerated(layout.cluster, plan.tp * plan.cp * plan.dp, plan.pp);
  expect_enumerated(layout.cluster, 1, plan.devices());
}

// Where a rank is, by coordinates: rank = tp + t (cp + c (dp + d pp)); experts: rank in stage = etp + t_e (ep + e
// copy).
struct Place {
  std::int64_t tp, cp, dp, pp, etp, ep, copy;
};

Place place_of(const Plan& plan, std::int64_t rank) {
  const std::int64_t in_stage = rank % plan.stage_ranks();
  return {rank % plan.tp,      rank / plan.tp % plan.cp,      in_stage / (plan.tp * plan.cp), rank / plan.stage_ranks(),
          in_stage % plan.etp, in_stage / plan.etp % plan.ep, in_stage / (plan.etp * plan.ep)};
}

// All ranks for which `same` is true with rank 0: the members of the first group of a kind.
template <class Same>
std::vector<std::int64_t> members(const Plan& plan, Same same) {
  const Place origin = place_of(plan, 0);
  std::vector<std::int64_t> list;
  for (std::int64_t rank = 0; rank < plan.devices(); ++rank) {
    if (same(origin, place_of(plan, rank), rank)) { list.push_back(rank); }
  }
  return list;
}

// Every group has as many members as the plan defines, with equal strides; the mesh's group has this stride.
RC_GTEST_PROP(Mesh, each_kind_of_group_holds_the_ranks_that_differ_in_its_coordinates_only, ()) {
  const Layout layout = any_layout();
  const Plan& plan = layout.plan;
  const Mesh mesh = make_mesh(layout.cluster, plan);
  const auto expect = [&](GroupKind kind, std::int64_t size, auto same) {
    const auto list = members(plan, same);
    RC_ASSERT(static_cast<std::int64_t>(list.size()) == size);
    const std::int64_t stride = size > 1 ? list[1] : 1;
    for (std::size_t i = 0; i < list.size(); ++i) { RC_ASSERT(list[i] == static_cast<std::int64_t>(i) * stride); }
    const auto group = size > 1 ? strided_group(layout.cluster, stride, size) : network::Group{};
    RC_ASSERT(mesh.group(kind) == group);
  };
  using P = const Place&;
  expect(GroupKind::tp, plan.tp, [](P a, P b, auto) { return a.cp == b.cp && a.dp == b.dp && a.pp == b.pp; });
  expect(GroupKind::cp, plan.cp, [](P a, P b, auto) { return a.tp == b.tp && a.dp == b.dp && a.pp == b.pp; });
  expect(GroupKind::dp, plan.cp * plan.dp, [](P a, P b, auto) { return a.tp == b.tp && a.pp == b.pp; });
  expect(GroupKind::etp, plan.etp, [](P a, P b, auto) { return a.ep == b.ep && a.copy == b.copy && a.pp == b.pp; });
  expect(GroupKind::ep, plan.ep, [](P a, P b, auto) { return a.etp == b.etp && a.copy == b.copy && a.pp == b.pp; });
  expect(GroupKind::expert_dp, plan.expert_replicas(),
         [](P a, P b, auto) { return a.etp == b.etp && a.ep == b.ep && a.pp == b.pp; });
  expect(GroupKind::world, plan.devices(), [](P, P, auto) { return true; });
  const auto replica = [&](P p) { return p.cp + plan.cp * p.dp; };
  expect(GroupKind::shard, plan.shards(), [&](P a, P b, auto) {
    return a.tp == b.tp && a.pp == b.pp && replica(a) / plan.shards() == replica(b) / plan.shards();
  });
  expect(GroupKind::copies, plan.sharded_copies(), [&](P a, P b, auto) {
    return a.tp == b.tp && a.pp == b.pp && replica(a) % plan.shards() == replica(b) % plan.shards();
  });
  RC_ASSERT(mesh.group(GroupKind::host) == network::Group{});
}

RC_GTEST_PROP(Mesh, a_transfer_is_charged_to_the_outermost_dimension_that_some_rank_s_message_crosses, ()) {
  const Layout layout = any_layout();
  const Mesh mesh = make_mesh(layout.cluster, layout.plan);
  const std::int64_t ranks = layout.plan.stage_ranks();
  const auto crossed = [&](std::int64_t stage, std::int64_t next) {
    int outermost = 0;
    for (std::int64_t r = 0; r < ranks; ++r) {
      outermost = std::max(outermost, outermost_difference(layout.cluster, stage * ranks + r, next * ranks + r));
    }
    return outermost;
  };
  if (layout.plan.pp == 1) { return; }
  for (std::int64_t stage = 0; stage < layout.plan.pp; ++stage) {
    RC_ASSERT(mesh.transfer_dimension[static_cast<std::size_t>(stage)] == crossed(stage, (stage + 1) % layout.plan.pp));
  }
  const network::Group ends{{{crossed(0, layout.plan.pp - 1), 2}}, true};
  RC_ASSERT(mesh.group(GroupKind::embedding) == ends);
  RC_ASSERT(mesh.group(GroupKind::mirror) == network::Group{});
  Plan both_ways = layout.plan;
  both_ways.schedule = ScheduleKind::dualpipe;
  RC_ASSERT(make_mesh(layout.cluster, both_ways).group(GroupKind::mirror) == ends);
}

// 8 x 4 devices, tp 4 x dp 4 x pp 2. Ranks of a dp group are 4 apart, two of them in each node: 2 x 2. Stages are half
// the nodes.
TEST(Mesh, tp_then_dp_then_pp_fill_the_dimensions_from_inside) {
  const auto cluster = test::cluster_of({8, 4});
  Plan plan;
  plan.tp = 4;
  plan.dp = 4;
  plan.pp = 2;
  const Mesh mesh = make_mesh(cluster, plan);
  EXPECT_EQ(mesh.group(GroupKind::tp), (network::Group{{{0, 4}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::dp), (network::Group{{{0, 2}, {1, 2}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::world), (network::Group{{{0, 8}, {1, 4}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::cp), network::Group{});
  EXPECT_EQ(mesh.transfer_dimension, (std::vector<int>{1, 1}));
}

// 8 x 4 devices, tp 2 x cp 2 x dp 8. Context parallelism is next to tp; ep 4 x etp 2 fills a node, so replicas of
// experts are whole nodes apart; two copies of weights that are sharded over 8 ranks each.
TEST(Mesh, experts_and_shards_lie_over_the_ranks_of_a_stage) {
  const auto cluster = test::cluster_of({8, 4});
  Plan plan;
  plan.tp = plan.cp = plan.etp = 2;
  plan.dp = plan.shard = 8;
  plan.ep = 4;
  const Mesh mesh = make_mesh(cluster, plan);
  EXPECT_EQ(mesh.group(GroupKind::cp), (network::Group{{{0, 2}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::etp), (network::Group{{{0, 2}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::ep), (network::Group{{{0, 4}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::expert_dp), (network::Group{{{1, 4}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::shard), (network::Group{{{0, 4}, {1, 2}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::copies), (network::Group{{{1, 2}}, true}));
}

// Groups of 3 on nodes of 8: ranks 6, 7, 8 are split over two nodes. All traffic goes to the network between nodes.
TEST(Mesh, a_group_that_straddles_nodes_is_irregular) {
  EXPECT_EQ(strided_group(test::cluster_of({8, 3}), 1, 3), (network::Group{{{1, 3}}, false}));
}

// Groups of 16 on nodes of 72: 0 to 15, ..., 48 to 63 are inside a node; 64 to 79 are 8 on each of two nodes.
TEST(Mesh, of_groups_of_different_shapes_the_slowest_counts) {
  EXPECT_EQ(strided_group(test::cluster_of({72, 4}), 1, 16), (network::Group{{{0, 8}, {1, 2}}, true}));
  // Of one node only, there is none that straddles. Groups of 32: 64 to 95 has 8 and 24.
  EXPECT_EQ(strided_group(test::cluster_of({16, 4}), 1, 16), (network::Group{{{0, 16}}, true}));
  EXPECT_EQ(strided_group(test::cluster_of({72, 4}), 1, 32), (network::Group{{{1, 32}}, false}));
  // tp 2, groups of 8 that are 2 ranks apart: 64, 66, ..., 78.
  EXPECT_EQ(strided_group(test::cluster_of({72, 4}), 2, 8), (network::Group{{{0, 4}, {1, 2}}, true}));
}

// Every group, one after the other.
RC_GTEST_PROP(Mesh, the_slowest_group_is_as_slow_as_any, ()) {
  const std::int64_t node = 2 * *rc::gen::inRange<std::int64_t>(1, 40),
                     nodes = 2 * *rc::gen::inRange<std::int64_t>(1, 5);
  const std::int64_t stride = 1 << *rc::gen::inRange(0, 3), degree = 2 * *rc::gen::inRange<std::int64_t>(1, 9);
  RC_PRE(node * nodes % (stride * degree) == 0);
  const auto cluster = test::cluster_of({node, nodes});
  const network::Group slowest = strided_group(cluster, stride, degree);
  std::int64_t across = 0;
  bool even = true;
  for (std::int64_t block = 0; block < node * nodes; block += stride * degree) {
    for (std::int64_t first = block; first < block + stride; ++first) {
      std::vector<std::uint32_t> ranks;
      for (std::int64_t i = 0; i < degree; ++i) { ranks.push_back(static_cast<std::uint32_t>(first + i * stride)); }
      const network::Group shape = shape_of(rank_order(cluster), ranks);
      even = even && shape.regular;
      const auto& outer = shape.extents.back();
      if (outer.dimension == 1) { across = std::max(across, outer.members); }
    }
  }
  if (!slowest.regular) { return; }  // some are not, or not in whole parts of the blocks
  RC_ASSERT(even);
  RC_ASSERT(across == (slowest.extents.back().dimension == 1 ? slowest.extents.back().members : 0));
}

// Groups of 4 in blocks of 2 x 3: the first is devices 0 to 3, two of three pairs; the second takes the last pair and
// the first of the next block. All 4 members are charged to the outermost dimension, not the 2 pairs.
TEST(Mesh, an_irregular_group_keeps_all_its_members) {
  EXPECT_EQ(strided_group(test::cluster_of({2, 4, 3}), 1, 12), (network::Group{{{2, 12}}, false}));
}

// 8 devices per node, 64 nodes: tp inside, replicas and stages across. Both are mapped to the whole dimension 1.
TEST(Placement, pinned_groups_lie_on_their_dimension) {
  const auto cluster = test::cluster_of({8, 64});
  Plan plan;
  plan.tp = 8;
  plan.dp = 16;
  plan.pp = 4;
  plan.placement = {0, Placement::kByRank, 1, 1};
  ASSERT_TRUE(is_placed(cluster, plan));
  const Mesh mesh = make_mesh(cluster, plan);
  EXPECT_EQ(mesh.group(GroupKind::tp), (network::Group{{{0, 8}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::dp), (network::Group{{{1, 16}}, true}));
  EXPECT_EQ(mesh.transfer_dimension, (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(mesh.group(GroupKind::world), (network::Group{{{0, 8}, {1, 64}}, true}));
}

// tp across nodes and stages inside: impossible in rank order.
TEST(Placement, turns_the_order_of_groups_round) {
  const auto cluster = test::cluster_of({8, 64});
  Plan plan;
  plan.tp = 4;
  plan.dp = 16;
  plan.pp = 8;
  plan.placement = {1, Placement::kByRank, 1, 0};
  ASSERT_TRUE(is_placed(cluster, plan));
  const Mesh mesh = make_mesh(cluster, plan);
  EXPECT_EQ(mesh.group(GroupKind::tp), (network::Group{{{1, 4}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::dp), (network::Group{{{1, 16}}, true}));
  EXPECT_EQ(mesh.transfer_dimension, std::vector<int>(8, 0));
}

// Pinning to where rank order places the groups changes nothing, whether all or some groups are pinned.
TEST(Placement, of_rank_order_changes_nothing) {
  const auto cluster = test::cluster_of({8, 64});
  Plan plan;
  plan.tp = 8;
  plan.dp = 16;
  plan.pp = 4;
  const Mesh usual = make_mesh(cluster, plan);
  for (const Placement& placement : {Placement{0, -1, 1, 1}, Placement{0, -1, -1, -1}, Placement{-1, -1, 1, -1}}) {
    plan.placement = placement;
    ASSERT_TRUE(is_placed(cluster, plan));
    const Mesh mesh = make_mesh(cluster, plan);
    EXPECT_EQ(mesh.groups, usual.groups);
    EXPECT_EQ(mesh.transfer_dimension, usual.transfer_dimension);
  }
}

// tp 4 of 8 positions of a node: the replicas, all pinned across, have the other positions too, and use their links.
TEST(Placement, places_that_inner_groups_leave_belong_to_those_of_the_outermost_dimension) {
  const auto cluster = test::cluster_of({8, 64});
  Plan plan;
  plan.tp = 4;
  plan.dp = 128;
  plan.placement = {0, Placement::kByRank, 1, Placement::kByRank};
  ASSERT_TRUE(is_placed(cluster, plan));
  EXPECT_EQ(make_mesh(cluster, plan).group(GroupKind::dp), (network::Group{{{1, 128}}, true}));
  plan.placement.dp = Placement::kByRank;  // in rank order: the other half of the node first
  ASSERT_TRUE(is_placed(cluster, plan));
  EXPECT_EQ(make_mesh(cluster, plan).group(GroupKind::dp), (network::Group{{{0, 2}, {1, 64}}, true}));
}

TEST(Placement, needs_dimensions_that_the_pinned_groups_divide_together) {
  const auto cluster = test::cluster_of({8, 64});
  Plan plan;
  plan.tp = 4;
  plan.dp = 32;
  plan.pp = 4;
  plan.placement = {0, -1, 1, 0};  // 4 x 4 on 8 positions
  EXPECT_FALSE(is_placed(cluster, plan));
  plan.placement = {0, -1, 0, 1};  // 4 x 32
  EXPECT_FALSE(is_placed(cluster, plan));
  plan.placement = {2, -1, -1, -1};  // there are two dimensions
  EXPECT_FALSE(is_placed(cluster, plan));
  plan.tp = 1;  // a group of one is not mapped
  plan.dp = 128;
  EXPECT_TRUE(is_placed(cluster, plan));
}

// Experts over tp and replicas that are mapped to two dimensions are split where the ranks are.
TEST(Placement, expert_groups_lie_where_the_ranks_of_a_stage_do) {
  const auto cluster = test::cluster_of({8, 64});
  Plan plan;
  plan.tp = 8;
  plan.dp = 64;
  plan.ep = 32;
  plan.placement = {1, -1, -1, -1};  // tp across nodes, replicas inside first
  ASSERT_TRUE(is_placed(cluster, plan));
  const Mesh mesh = make_mesh(cluster, plan);
  EXPECT_EQ(mesh.group(GroupKind::dp), (network::Group{{{0, 8}, {1, 8}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::ep), (network::Group{{{0, 4}, {1, 8}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::ep_node), (network::Group{{{0, 4}}, true}));
  EXPECT_EQ(mesh.group(GroupKind::expert_dp), (network::Group{{{0, 2}, {1, 8}}, true}));
}

// 32 ranks on four nodes: of 32 shards 24 leave the node, which an all-to-all of all bytes over the nodes sends; eight
// stay, which an all-to-all of a quarter moves. In one node all do.
TEST(Placement, low_latency_copies_cross_each_dimension_once) {
  const auto cluster = test::cluster_of({8, 64});
  Plan plan;
  plan.dp = plan.ep = 32;
  CollectiveCall call{Collective::all_to_all, GroupKind::ep, Bytes(3200), {}};
  call.node_dispatch = {.copies = 8.0, .low_latency = true};
  const auto bytes = node_dispatch_bytes(call, make_mesh(cluster, plan));
  EXPECT_EQ(bytes.across, Bytes(3200));
  EXPECT_EQ(bytes.inside, Bytes(800));
  EXPECT_EQ(bytes.inside_group, GroupKind::ep_node);
  plan.dp = plan.ep = 8;
  const auto near = node_dispatch_bytes(call, make_mesh(cluster, plan));
  EXPECT_EQ(near.across, Bytes(0));
  EXPECT_EQ(near.inside, Bytes(3200));
  EXPECT_EQ(near.inside_group, GroupKind::ep);
}

}  // namespace
}  // namespace orrery::parallel::mesh_test
