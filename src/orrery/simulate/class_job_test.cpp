// Jobs of classes of ranks: which may be folded, and what their groups and messages become.
#include "orrery/simulate/class_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "orrery/parallel/test_jobs.hpp"
#include "orrery/simulate/class_parts.hpp"
#include "orrery/simulate/collective_match.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::class_job_test {
namespace {

using parallel::test::any_of;
using parallel::test::SeededRandom;

std::vector<std::uint32_t> ranks_of(const StridedRanks& ranks) {
  std::vector<std::uint32_t> list;
  for (std::uint64_t i = 0; i < ranks.degree; ++i) { list.push_back(static_cast<std::uint32_t>(ranks.rank(i))); }
  return list;
}

graph::Graph graph_of(const std::vector<graph::NodeRecord>& nodes) {
  graph::GraphBuilder builder;
  for (const auto& node : nodes) { builder.add(node); }
  return std::move(builder.finish().value());
}

// `classes` graphs of `ranks` ranks each on the dimensions `sizes`.
ClassJob job_of(const hardware::Cluster& cluster, std::uint32_t ranks, std::vector<GroupFamily> families,
                const std::vector<std::vector<graph::NodeRecord>>& classes) {
  ClassJob job;
  job.machine = machine_on(cluster);
  job.machine.backend = Backend::flow;
  job.class_ranks = ranks;
  job.families = std::move(families);
  for (const auto& nodes : classes) {
    const auto added = add_class(job, graph_of(nodes), "graph", classes.size());
    if (!added) { throw std::runtime_error(added.error().text()); }
  }
  return job;
}

std::string obstacle_of(const hardware::Cluster& cluster, const ClassJob& job) {
  const auto obstacle = fold_obstacle(cluster, job);
  return obstacle ? obstacle->text : "";
}

TEST(ClassJob, members_and_their_classes_are_found_without_a_list) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SeededRandom random(seed);
    const auto pick = [&](const std::vector<std::int64_t>& from) {
      return static_cast<std::uint64_t>(any_of(random, from));
    };
    StridedRanks ranks;
    ranks.first = pick({0, 1, 5, 17, 40});
    ranks.stride = pick({1, 2, 3, 7, 12, 30});
    ranks.inner = ranks.degree = pick({1, 2, 3, 8, 16});
    if (seed % 2 == 1) {
      ranks.degree = ranks.inner * pick({2, 3, 5});
      ranks.outer_stride = ranks.stride * ranks.inner * pick({1, 2, 3});
    }
    const std::vector<std::uint32_t> list = ranks_of(ranks);
    for (std::uint32_t rank = 0; rank < list.back() + 3; ++rank) {
      ASSERT_EQ(ranks.contains(rank), std::find(list.begin(), list.end(), rank) != list.end()) << seed << " " << rank;
    }
    const auto class_ranks = static_cast<std::uint32_t>(pick({1, 2, 5, 8, 24, 100}));
    std::set<std::uint32_t> classes;
    for (const std::uint32_t rank : list) { classes.insert(rank / class_ranks); }
    ASSERT_EQ(classes_of(ranks, class_ranks), std::vector<std::uint32_t>(classes.begin(), classes.end())) << seed;
  }
}

// A family of strided groups has one shape exactly if every group has that of the first, found by a look at all ranks.
TEST(ClassJob, the_common_shape_of_a_family_is_that_of_each_group) {
  int common = 0, different = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SeededRandom random(seed);
    const std::vector<std::int64_t> sizes = {any_of(random, {1, 2, 4, 6, 8}), any_of(random, {1, 2, 3, 4}),
                                             any_of(random, {1, 2, 3, 8})};
    const auto ranks = static_cast<std::uint64_t>(sizes[0] * sizes[1] * sizes[2]);
    GroupFamily family;
    family.stride = static_cast<std::uint64_t>(any_of(random, {1, 2, 3, 4, 6, 8, 12, 24, 32}));
    family.degree = static_cast<std::uint64_t>(any_of(random, {2, 3, 4, 8}));
    if (ranks % (family.stride * family.degree) != 0) { continue; }
    family.count = ranks / family.degree;
    const hardware::Cluster cluster = parallel::test::cluster_of(sizes);
    ClassJob job;
    job.class_ranks = static_cast<std::uint32_t>(ranks);
    job.classes.resize(1);
    const auto shape = [&](std::uint64_t group) {
      return shape_of(parallel::rank_order(cluster), ranks_of(job.members(family, group)));
    };
    bool is_common = true;
    for (std::uint64_t group = 1; group < family.count; ++group) { is_common = is_common && shape(group) == shape(0); }
    const auto found = common_shape(cluster, job, family);
    ASSERT_EQ(found.has_value(), is_common) << seed;
    if (found) { ASSERT_EQ(*found, shape(0)) << seed; }
    ++(is_common ? common : different);
  }
  EXPECT_GT(common, 100);
  EXPECT_GT(different, 100);
}

TEST(ClassJob, groups_of_a_family_have_every_rank_once) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    ClassJob job;
    job.class_ranks = 24;
    job.classes.resize(4);
    GroupFamily family;
    family.stride = static_cast<std::uint64_t>(any_of(random, {1, 2, 3, 4, 6, 8}));
    family.degree = static_cast<std::uint64_t>(any_of(random, {2, 3, 4}));
    if (96 % (family.stride * family.degree) != 0) { continue; }
    family.count = 96 / family.degree;
    family.is_mirrored = seed % 5 == 0;
    if (family.is_mirrored) { family.count = 48; }
    std::vector<int> seen(96);
    for (std::uint64_t group = 0; group < family.count; ++group) {
      for (const std::uint32_t rank : ranks_of(job.members(family, group))) {
        ++seen.at(rank);
        EXPECT_EQ(job.group_of(family, rank), group);
      }
    }
    EXPECT_EQ(seen, std::vector<int>(96, 1));
  }
}

// The conditions of folding are found by arithmetic for groups that fill dimensions evenly; here, by a look at all.
TEST(ClassJob, a_job_folds_exactly_if_all_groups_have_one_shape_and_all_messages_cross_one_dimension) {
  int folds = 0, refused = 0, finer = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SeededRandom random(seed);
    const std::int64_t classes = any_of(random, {1, 2, 3, 4}), ranks = any_of(random, {4, 6, 8, 12});
    std::vector<std::int64_t> sizes = {any_of(random, {1, 2, 4, 6, 8}), any_of(random, {1, 2, 3, 4})};
    if (classes * ranks % (sizes[0] * sizes[1]) != 0) { continue; }
    sizes.push_back(classes * ranks / (sizes[0] * sizes[1]));
    const hardware::Cluster cluster = parallel::test::cluster_of(sizes);
    GroupFamily family;
    family.name = "tp";
    family.stride = static_cast<std::uint64_t>(any_of(random, {1, 2, 3, 4}));
    family.degree = static_cast<std::uint64_t>(any_of(random, {2, 3, 4}));
    if (static_cast<std::uint64_t>(ranks) % (family.stride * family.degree) != 0) { continue; }
    family.count = static_cast<std::uint64_t>(classes * ranks) / family.degree;
    std::vector<std::vector<graph::NodeRecord>> graphs;
    for (std::int64_t c = 0; c < classes; ++c) {
      std::vector<graph::NodeRecord> nodes = {all_reduce(1, 1 << 20, {}, "tp")};
      if (c > 0) { nodes.push_back(receive(2, static_cast<std::int64_t>((c - 1) * ranks), 4096)); }
      if (c + 1 < classes) { nodes.push_back(send(3, static_cast<std::int64_t>((c + 1) * ranks), 4096)); }
      graphs.push_back(std::move(nodes));
    }
    const ClassJob job = job_of(cluster, static_cast<std::uint32_t>(ranks), {family}, graphs);
    bool alike = true;
    for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) {
      const std::uint32_t first = rank / job.class_ranks * job.class_ranks;
      const auto shape = [&](std::uint32_t of) {
        return shape_of(parallel::rank_order(cluster), ranks_of(job.members(family, *job.group_of(family, of))));
      };
      alike = alike && shape(rank) == shape(first);
      const std::uint32_t next = job.class_ranks;
      if (rank + next >= job.ranks()) { continue; }
      alike = alike && parallel::crossed_dimension(parallel::rank_order(cluster), rank, rank + next) ==
                           parallel::crossed_dimension(parallel::rank_order(cluster), first, first + next);
    }
    EXPECT_EQ(obstacle_of(cluster, job).empty(), alike) << "seed " << seed << ": " << obstacle_of(cluster, job);
    ++(alike ? folds : refused);
    const auto all = folded(cluster, job, Folding::off), one = folded(cluster, job, Folding::automatic);
    if (alike) { EXPECT_EQ(one.job.job.rank_graphs.size(), static_cast<std::size_t>(classes)); }
    if (!alike) { EXPECT_GT(one.job.job.rank_graphs.size(), static_cast<std::size_t>(classes)); }
    finer += !alike && one.unfolded_because.empty() ? 1 : 0;
    EXPECT_EQ(simulate_flows(one.job)->ranks, simulate_flows(all.job)->ranks) << "seed " << seed;
  }
  EXPECT_GT(folds, 100);
  EXPECT_GT(refused, 100);
  EXPECT_GT(finer, 50);
}

// Two classes of 8 ranks on nodes of 4 with groups inside a class, over both classes, and of all ranks; messages
// between classes and in rings.
ClassJob job_with_shared_graphs(const hardware::Cluster& cluster) {
  graph::NodeRecord ring = send(4, 1, 4096);
  ring.attributes.push_back({graph::keys::peer_group, graph::Value::text("cp"), {}, {}});
  graph::NodeRecord from_ring = receive(5, 3, 4096);
  from_ring.attributes.push_back({graph::keys::peer_group, graph::Value::text("cp"), {}, {}});
  const std::vector<graph::NodeRecord> first = {all_reduce(1, 1 << 20, {}, "dp"),
                                                all_reduce(2, 1 << 20, {1}, "cp"),
                                                send(3, 8, 8192),
                                                ring,
                                                from_ring,
                                                all_reduce(6, 1 << 20, {}, "dp"),
                                                all_reduce(7, 4096, {5}),
                                                all_reduce(8, 1 << 20, {}, "ends")};
  const std::vector<graph::NodeRecord> second = {all_reduce(1, 1 << 20, {}, "cp"), receive(3, 0, 8192),
                                                 all_reduce(6, 1 << 20, {1}, "dp"), all_reduce(7, 4096, {3}),
                                                 all_reduce(8, 1 << 20, {}, "ends")};
  return job_of(cluster, 8, {{"cp", 1, 4, 1, 4, false}, {"dp", 5, 8, 4, 2, false}, {"ends", 13, 8, 8, 2, false}},
                {first, second});
}

TEST(ClassJob, ranks_that_share_a_graph_have_their_own_groups_and_peers) {
  const hardware::Cluster cluster = parallel::test::cluster_of({4, 4});
  const ClassJob job = job_with_shared_graphs(cluster);
  const parallel::Layout layout = parallel::rank_order(cluster);
  FlowJob flow = folded(cluster, job, Folding::off).job;
  RankGraphs& graphs = flow.job.rank_graphs;
  ASSERT_EQ(graphs.size(), 16U);
  ASSERT_TRUE(graphs.has_slots());
  std::vector<std::vector<NodeTask>> all;
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    const std::uint32_t c = rank / 8;
    ASSERT_EQ(&graphs[rank], &graphs[c * 8]);
    auto& tasks = all.emplace_back();
    for (std::uint32_t node = 0; node < graphs[rank].nodes.size(); ++node) {
      const NodeTask task = tasks.emplace_back(graphs.task(rank, node)), of_class = job.classes[c].graph.nodes[node];
      EXPECT_EQ(task.amount, of_class.amount);
      if (uses_group(of_class)) {
        const GroupFamily& family = job.families[of_class.group - 1];
        EXPECT_EQ(flow.job.groups.at(task.group - 1).ranks, ranks_of(job.members(family, *job.group_of(family, rank))));
      } else {
        EXPECT_EQ(task.group, kWholeMachine);
      }
      if (!is_message(task)) { continue; }
      EXPECT_EQ(task.peer, Peers(job, c).of(node, rank));
      EXPECT_EQ(task.dimensions, parallel::crossed_dimension(layout, rank, task.peer));
    }
  }
  // By hand: rank 6 is third in the ring of 4 to 7, and sends to the same place of the other class.
  EXPECT_EQ(all[6][2].peer, 14U);
  EXPECT_EQ(all[6][3].peer, 7U);
  EXPECT_EQ(all[6][4].peer, 5U);
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(graphs.own(rank).nodes, all[rank]) << rank;
    EXPECT_EQ(graphs.task(rank, 1), all[rank][1]) << rank;
  }
  EXPECT_FALSE(graphs.has_slots());
  const auto shared = simulate_flows(folded(cluster, job, Folding::off).job), owned = simulate_flows(flow);
  ASSERT_TRUE(shared && owned);
  EXPECT_EQ(shared->ranks, owned->ranks);
  EXPECT_GT(shared->makespan_ns(), 0U);
}

// A list of (node, collective) by rank, with the k-th collective of every key looked up for every node.
std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> matched_one_by_one(const RankGraphs& graphs) {
  using Key = std::tuple<std::uint32_t, Collective, std::uint64_t, std::uint16_t, std::uint16_t, std::uint32_t>;
  std::map<Key, std::uint32_t> known;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> found(graphs.size());
  for (std::uint32_t rank = 0; rank < graphs.size(); ++rank) {
    std::map<Key, std::uint32_t> counts;
    for (std::uint32_t node = 0; node < graphs[rank].nodes.size(); ++node) {
      const NodeTask task = graphs.task(rank, node);
      if (task.act != Act::collective) { continue; }
      Key key{task.group, task.collective, task.amount, task.dimensions, task.custom, 0};
      std::get<5>(key) = counts[key]++;
      found[rank].emplace_back(node, known.try_emplace(key, static_cast<std::uint32_t>(known.size())).first->second);
    }
  }
  return found;
}

TEST(ClassJob, collectives_of_shared_graphs_are_those_found_one_by_one) {
  const hardware::Cluster cluster = parallel::test::cluster_of({4, 4});
  FlowJob flow = folded(cluster, job_with_shared_graphs(cluster), Folding::off).job;
  // Rank 3 has a collective more than the others of its group, and rank 9 one less.
  auto& more = flow.job.rank_graphs.own(3).nodes;
  more.push_back(more[5]);
  flow.job.rank_graphs.own(9).nodes.erase(flow.job.rank_graphs.own(9).nodes.begin() + 2);
  const CollectiveMatch match(flow.job);
  const auto expected = matched_one_by_one(flow.job.rank_graphs);
  std::uint32_t most = 0;
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    std::uint32_t place = 0;
    for (const auto& [node, number] : expected[rank]) {
      EXPECT_EQ(match.collective_of(rank, node), number);
      EXPECT_EQ(match.collective_of(rank, node, place), number);
      EXPECT_EQ(match.node_of(rank, number), node);
      EXPECT_EQ(match.all().at(number).task.group, flow.job.rank_graphs.task(rank, node).group);
      most = std::max(most, number);
    }
  }
  EXPECT_EQ(match.all().size(), most + 1U);
}

TEST(ClassJob, why_a_job_is_not_folded_is_said) {
  const hardware::Cluster cluster = parallel::test::cluster_of({4, 3});
  GroupFamily tp{"tp", 1, 4, 1, 3, false};  // ranks 0 to 2 are on one node, 3 to 5 on two
  EXPECT_EQ(obstacle_of(cluster, job_of(cluster, 12, {tp}, {{all_reduce(1, 4096, {}, "tp")}})),
            "the tp groups of ranks 0 to 11 have different shapes on the cluster");
  const hardware::Cluster node = parallel::test::cluster_of({8, 2});
  const auto pair = [](std::int64_t peer) { return send(1, peer, 4096); };
  EXPECT_EQ(obstacle_of(
                node, job_of(node, 4, {}, {{pair(4)}, {receive(1, 0, 4096)}, {all_reduce(1, 8)}, {all_reduce(1, 8)}})),
            "");
  // Rank 0 sends to 6, inside its node; 2 sends to 8, on the next one.
  const hardware::Cluster odd = parallel::test::cluster_of({8, 3});
  EXPECT_EQ(
      obstacle_of(odd, job_of(odd, 6, {}, {{pair(6)}, {receive(1, 0, 4096)}, {all_reduce(1, 8)}, {all_reduce(1, 8)}})),
      "messages of ranks 0 to 5 cross different dimensions of the cluster");
}

// Folded, the messages of a rank to two neighbours would be matched in the order in which they are sent.
TEST(ClassJob, messages_that_could_be_taken_for_each_other_are_not_folded) {
  const hardware::Cluster cluster = parallel::test::cluster_of({4, 2});
  const auto job = [&](std::int64_t bytes) {
    const auto in_ring = [](graph::NodeRecord node, std::string_view group) {
      node.attributes.push_back({graph::keys::peer_group, graph::Value::text(group), {}, {}});
      return node;
    };
    return job_of(cluster, 8, {{"cp", 1, 4, 1, 2, false}, {"ep", 5, 4, 2, 2, false}},
                  {{in_ring(send(1, 1, 4096), "cp"), in_ring(send(2, 2, bytes), "ep"),
                    in_ring(receive(3, 1, 4096), "cp"), in_ring(receive(4, 2, bytes), "ep")}});
  };
  EXPECT_EQ(folded(cluster, job(4096), Folding::automatic).unfolded_because,
            "ranks 0 to 7 have messages with the same tag to several ranks of a class");
  EXPECT_EQ(folded(cluster, job(8192), Folding::automatic).unfolded_because, "");
}

TEST(ClassJob, a_graph_whose_ranks_are_in_no_group_of_its_collectives_is_an_error) {
  const hardware::Cluster cluster = parallel::test::cluster_of({4, 4});
  ClassJob job;
  job.machine = machine_on(cluster);
  job.machine.backend = Backend::flow;
  job.class_ranks = 8;
  job.families = {{"tp", 1, 3, 1, 4, false}};  // ranks 12 to 15 are in none
  const graph::Graph graph = graph_of({all_reduce(1, 4096, {}, "tp")});
  ASSERT_TRUE(add_class(job, graph, "first", 2));
  const auto added = add_class(job, graph, "second", 2);
  ASSERT_FALSE(added);
  EXPECT_EQ(
      added.error().text(),
      "second: is the graph of ranks 8 to 15 and has collectives of \"tp\", but rank 12 is in none of the 3 groups "
      "of that name");
}

TEST(ClassJob, groups_of_the_same_classes_are_one_when_folded) {
  const hardware::Cluster cluster = parallel::test::cluster_of({4, 4});
  const GroupFamily ends{"embedding", 1, 4, 12, 2, false}, pairs{"tp", 5, 8, 1, 2, false};
  const auto nodes = [](bool is_end) {
    std::vector<graph::NodeRecord> list = {all_reduce(1, 1 << 20, {}, "tp")};
    if (is_end) { list.push_back(all_reduce(2, 1 << 20, {}, "embedding")); }
    return list;
  };
  const ClassJob job = job_of(cluster, 4, {ends, pairs}, {nodes(true), nodes(false), nodes(false), nodes(true)});
  const FoldedJob made = folded(cluster, job, Folding::automatic);
  ASSERT_EQ(made.job.job.groups.size(), 5U);  // tp of each class, and the ends
  const auto find = [&](const char* name, std::size_t members) {
    for (std::size_t i = 0; i < made.job.job.groups.size(); ++i) {
      if (made.job.job.groups[i].name == name && made.job.job.groups[i].ranks.size() == members) { return i + 1; }
    }
    return std::size_t{0};
  };
  const std::size_t of_ends = find("embedding", 2), of_tp = find("tp", 1);
  ASSERT_NE(of_ends, 0U);
  ASSERT_NE(of_tp, 0U);
  EXPECT_EQ(made.job.groups[of_ends].copies, 4U);
  EXPECT_EQ(made.job.groups[of_tp].copies, 2U);
  EXPECT_EQ(made.job.groups[of_tp].shape.size(), 2);
  EXPECT_EQ(made.job.simulated.size(), 16U);
}

}  // namespace
}  // namespace orrery::simulate::test::class_job_test
