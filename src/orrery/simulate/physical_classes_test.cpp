// Jobs on physical links of which one rank of each class is simulated have the times of all ranks, or are not folded
// and say why.
#include "orrery/simulate/physical_classes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/simulate/one_rank.hpp"
#include "orrery/simulate/physical_machine.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::physical_classes_test {
namespace {

// Ranks by (tp, dp, stage), inner first, as generated jobs have them.
struct Shape {
  std::uint32_t tp = 1, dp = 1, pp = 1;
  [[nodiscard]] std::uint32_t ranks() const { return tp * dp * pp; }
  [[nodiscard]] std::uint32_t stage(std::uint32_t rank) const { return rank / (tp * dp); }
};

struct Groups {
  std::vector<Group> list;
  std::vector<std::vector<std::uint32_t>> of;  // by rank: tp, dp, all, ends of the pipeline (0: none)
};

Groups groups_of(const Shape& shape) {
  Groups made;
  made.of.assign(shape.ranks(), std::vector<std::uint32_t>(4, 0));
  const auto add = [&](std::size_t kind, std::vector<std::uint32_t> ranks) {
    for (const std::uint32_t rank : ranks) { made.of[rank][kind] = static_cast<std::uint32_t>(made.list.size() + 1); }
    made.list.push_back({std::to_string(made.list.size() + 1), std::move(ranks)});
  };
  std::vector<std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
    all.push_back(rank);
    std::vector<std::uint32_t> tp, dp;
    for (std::uint32_t i = 0; rank % shape.tp == 0 && i < shape.tp; ++i) { tp.push_back(rank + i); }
    for (std::uint32_t i = 0; rank % (shape.tp * shape.dp) < shape.tp && i < shape.dp; ++i) {
      dp.push_back(rank + i * shape.tp);
    }
    if (tp.size() > 1) { add(0, tp); }
    if (dp.size() > 1) { add(1, dp); }
    if (shape.stage(rank) == 0 && shape.pp > 1) { add(3, {rank, rank + shape.tp * shape.dp * (shape.pp - 1)}); }
  }
  add(2, all);
  return made;
}

NodeRecord tagged(NodeRecord record, std::int64_t tag) {
  record.attributes.back() = number(keys::comm_tag, tag);
  return record;
}

// A pipeline whose stages have kernels, collectives of their groups and messages to the next stage; `random` is copied,
// so that ranks of a stage have the same.
std::vector<NodeRecord> nodes_of(const Shape& shape, const Groups& groups, std::uint32_t rank, RandomNumbers random) {
  std::vector<NodeRecord> nodes;
  const std::uint32_t stage = shape.stage(rank), block = shape.tp * shape.dp;
  const std::uint32_t steps = 1 + random.below(3);
  RandomNumbers waits(random.below(1U << 20U) + stage);  // stages have different numbers of nodes
  const auto add = [&](NodeRecord made) {
    if (!nodes.empty() && waits.below(4) != 0) { made.data_deps.push_back(nodes.back().id); }
    nodes.push_back(std::move(made));
  };
  const auto next = [&] { return static_cast<std::uint64_t>(nodes.size() + 1); };
  const std::array types = {CollectiveType::all_reduce, CollectiveType::all_gather, CollectiveType::reduce_scatter};
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::int64_t bytes = 1024 * (1 + random.below(64));
    const std::uint64_t time = 1 + random.below(40), slower = random.below(20);
    if (stage > 0) { add(tagged(receive(next(), rank - block, bytes), step)); }
    add(compute(next(), time + slower * stage));
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t kind = random.below(8), type = random.below(3);
      const std::int64_t size = 256 * (1 + random.below(4096));
      const std::uint32_t group = groups.of[rank][std::min(kind / 2, 3U)];
      const bool is_rare = random.below(3) != 0;
      if (group == 0 || (kind >= 4 && is_rare)) { continue; }
      const auto name = std::string_view(groups.list[group - 1].name);
      add(collective(next(), types[type], size, {}, name));
    }
    if (stage + 1 < shape.pp) { add(tagged(send(next(), rank + block, bytes), step)); }
  }
  return nodes;
}

Rig any_rig(RandomNumbers& random, const Shape& shape) {
  const std::vector<std::string> names = {"ring", "direct", "halvingDoubling", "ring"};
  std::vector<std::pair<Wiring, std::uint32_t>> dimensions;
  const auto any_wiring = [&] { return static_cast<Wiring>(std::array{0, 1, 2, 1, 2}[random.below(5)]); };
  std::uint32_t inner = 1;
  switch (random.below(4)) {
    case 0: break;
    case 1: inner = shape.tp; break;
    case 2: inner = shape.tp * shape.dp; break;
    case 3: inner = shape.dp % 2 == 0 ? shape.tp * 2 : 1; break;
  }
  if (inner > 1) { dimensions.emplace_back(any_wiring(), inner); }
  if (shape.ranks() / inner > 1) { dimensions.emplace_back(any_wiring(), shape.ranks() / inner); }
  std::vector<std::string> algorithms;
  for (std::size_t i = 0; i < dimensions.size(); ++i) { algorithms.push_back(names[random.below(4)]); }
  Rig rig(dimensions, algorithms);
  rig.physical().chunks(1 + random.below(4));
  for (RigDimension& dimension : rig.dimensions) { dimension.latency_ns = random.below(3) * 250; }
  rig.system.endpoint_delay_ns = random.below(2) * 10;
  rig.system.local_memory_gb = random.below(2) * 1600;
  return rig;
}

struct Counts {
  std::uint64_t folded = 0, unfolded = 0, failed = 0, with_messages = 0, ranks = 0, simulated = 0;
};

// When nodes of these ranks start and end, in picoseconds.
using Spans = std::vector<std::array<std::uint64_t, 4>>;
Spans spans_of(const SimulationJob& job, const std::vector<std::uint32_t>& images) {
  PhysicalMachine machine(job);
  machine.run();
  Spans spans;
  for (const PhysicalSpan& span : machine.nodes().spans()) {
    if (images[span.rank] == span.rank) { spans.push_back({span.rank, span.node, span.start, span.end}); }
  }
  std::sort(spans.begin(), spans.end());
  return spans;
}

bool has_messages(const SimulationJob& job) {
  return std::any_of(job.rank_graphs.begin(), job.rank_graphs.end(), [](const RankGraph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const NodeTask& task) { return task.act == Act::send; });
  });
}

// Results of all ranks, and every start and end of simulated ones to the picosecond.
void expect_same(const SimulationJob& job, Counts& counts, std::uint64_t seed) {
  const auto all = simulate(job), some = simulate_folded(job).map([](OneRankRun&& run) { return run.simulation; });
  ASSERT_EQ(all.has_value(), some.has_value()) << seed;
  if (!all) {
    ASSERT_EQ(all.error().text(), some.error().text()) << seed;
    ++counts.failed;
    return;
  }
  ASSERT_EQ(some->ranks, all->ranks) << seed;
  const bool is_folded = some->simulated_ranks < job.network.ranks();
  ++(is_folded ? counts.folded : counts.unfolded);
  if (!is_folded) { return; }
  counts.ranks += job.network.ranks();
  counts.simulated += some->simulated_ranks;
  const RankClasses classes = physical_classes(job);
  ASSERT_EQ(classes.representatives, some->representatives) << seed;
  const SimulationJob folded = job_of_classes(job, classes);
  const auto one = spans_of(folded, folded.images), each = spans_of(job, folded.images);
  ASSERT_EQ(one, each) << seed;
  counts.with_messages += has_messages(folded) ? 1 : 0;
}

Shape any_shape(RandomNumbers& random) { return {1U << random.below(3), 1 + random.below(4), 1 + random.below(4)}; }

// `change`: of one rank's nodes, or of the groups.
template <class Change>
Counts run_jobs(std::uint64_t first, std::uint64_t jobs, Change&& change) {
  Counts counts;
  for (std::uint64_t seed = first; seed < first + jobs; ++seed) {
    RandomNumbers random(seed);
    const Shape shape = any_shape(random);
    if (shape.ranks() == 1) { continue; }
    Groups groups = groups_of(shape);
    Rig rig = any_rig(random, shape);
    const std::uint32_t odd = random.below(shape.ranks()), what = random.below(100);
    std::vector<std::vector<NodeRecord>> nodes;
    for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
      nodes.push_back(nodes_of(shape, groups, rank, RandomNumbers(seed + 1)));
    }
    rig.groups = groups.list;
    change(nodes[odd], rig.groups, what);
    auto job = job_of(rig, [&](std::uint32_t rank) { return nodes[rank]; });
    if (!job) { continue; }
    job->tables = false;
    expect_same(*job, counts, seed);
    if (::testing::Test::HasFatalFailure()) { break; }
  }
  std::cout << "  " << counts.folded << " folded (" << counts.with_messages << " with messages; " << counts.simulated
            << " of " << counts.ranks << " ranks simulated), " << counts.unfolded << " not, " << counts.failed
            << " do not run\n";
  return counts;
}

TEST(PhysicalClasses, pipelines_with_groups_have_the_times_of_all_ranks) {
  const std::uint64_t jobs = orrery::test::cases(4000U);
  const Counts counts = run_jobs(1, jobs, [](auto&, auto&, std::uint32_t) {});
  EXPECT_GT(counts.folded, jobs / 4);
  EXPECT_GT(counts.with_messages, jobs / 10);
  EXPECT_GT(counts.unfolded, jobs / 20);
}

// A longer kernel or a larger collective of one rank, or two ranks of a group that have changed places.
TEST(PhysicalClasses, jobs_with_one_odd_rank_or_group_have_the_times_of_all_ranks) {
  const std::uint64_t jobs = orrery::test::cases(4000U);
  const Counts counts = run_jobs(1000000, jobs, [](auto& nodes, auto& groups, std::uint32_t what) {
    if (what % 2 == 0) {
      for (NodeRecord& record : nodes) {
        if (record.type == NodeType::comp) { record.duration_us += 1 + what; }
      }
      return;
    }
    auto& ranks = groups[what % groups.size()].ranks;
    std::swap(ranks.front(), ranks[what / 2 % ranks.size()]);
  });
  EXPECT_GT(counts.folded, jobs / 20);
  EXPECT_GT(counts.unfolded, jobs / 20);
}

// Ranks 0 and 1 are partners and neighbours: the messages of both collectives share the link from 0 to 1, but from 1
// they go to 0 and to 2.
TEST(PhysicalClasses, collectives_that_share_links_of_some_ranks_only_are_not_folded_to_one_rank) {
  Rig rig({{Wiring::mesh, 8}}, {"ring"});
  rig.physical();
  rig.system.algorithms[static_cast<std::size_t>(Collective::all_reduce)] =
      std::vector{algorithm("halvingDoubling").value()};
  auto job = job_of(rig, [](std::uint32_t) {
    return std::vector{all_reduce(1, kMiB), collective(2, CollectiveType::all_gather, kMiB)};
  });
  ASSERT_TRUE(job);
  job->tables = false;
  EXPECT_EQ(one_rank_obstacle(*job), "halvingDoubling and another algorithm share the links of a full mesh");
  EXPECT_GT(simulate(*job)->ranks.runs().size(), 1U);
  Counts counts;
  expect_same(*job, counts, 0);
}

std::string unfolded_because(const Rig& rig, const Nodes& nodes) {
  auto job = job_of(rig, nodes);
  if (!job) { throw std::runtime_error(job.error().text()); }
  job->tables = false;
  const auto folded = simulate_folded(*job);
  if (!folded) { throw std::runtime_error(folded.error().text()); }
  EXPECT_EQ(folded->simulation.ranks, simulate(*job)->ranks);
  return folded->unfolded_because;
}

// 2 nodes of 4: tensor-parallel pairs, and messages from the first node to the second.
TEST(PhysicalClasses, one_rank_of_each_stage_is_simulated) {
  Rig rig({{Wiring::mesh, 4}, {Wiring::switched, 2}}, {"ring", "ring"});
  rig.physical();
  rig.groups = {{"1", {0, 1}}, {"2", {2, 3}}, {"3", {4, 5}}, {"4", {6, 7}}};
  static constexpr std::array kNames = {"1", "2", "3", "4"};
  auto job = job_of(rig, [](std::uint32_t rank) {
    const auto reduce = all_reduce(2, kMiB, {1}, kNames[rank / 2]);
    return std::vector{rank < 4 ? send(1, rank + 4, 4096) : receive(1, rank - 4, 4096), reduce};
  });
  ASSERT_TRUE(job);
  job->tables = false;
  double clock = 0;
  const auto folded = simulate_folded(*job, [&] { return clock += 0.5; });
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->unfolded_because, "");
  EXPECT_EQ(folded->simulation.representatives, (std::vector<std::uint32_t>{0, 4}));
  EXPECT_EQ(folded->simulation.simulated_ranks, 2U);
  EXPECT_EQ(folded->simulation.comparison_wall_s, 0.5);
  EXPECT_EQ(folded->simulation.ranks, simulate(*job)->ranks);
}

TEST(PhysicalClasses, why_every_rank_is_simulated_is_said) {
  Rig rig({{Wiring::ring, 4}, {Wiring::switched, 2}}, {"ring", "ring"});
  rig.physical();
  const auto shift = [](std::uint32_t by) {
    return [by](std::uint32_t rank) {
      return std::vector{rank < 4 ? send(1, (rank + by) % 4 + 4 * (by / 4), 64)
                                  : receive(1, by < 4 ? rank : (rank + 8 - by) % 4, 64)};
    };
  };
  EXPECT_EQ(unfolded_because(rig, shift(4)), "");
  EXPECT_EQ(unfolded_because(rig, shift(5)), "a message of ranks 0 and 5 crosses several dimensions");
  EXPECT_EQ(unfolded_because(rig,
                             [](std::uint32_t rank) {
                               const std::uint32_t peer = rank ^ 2U;
                               return std::vector{rank < peer ? send(1, peer, 64) : receive(1, peer, 64)};
                             }),
            "a message of ranks 0 and 2 passes other ranks of a ring");
  rig.groups = {{"1", {0, 1}}, {"2", {2, 3}}, {"3", {4, 5}}, {"4", {6, 7}}};
  static constexpr std::array kNames = {"1", "2", "3", "4"};
  const auto pairs = [](std::uint32_t rank) { return std::vector{all_reduce(1, kMiB, {}, kNames[rank / 2])}; };
  EXPECT_EQ(unfolded_because(rig, pairs), "group 1 has a part of a ring, whose other links it may use");
  rig.dimensions[0].wiring = Wiring::mesh;
  EXPECT_EQ(unfolded_because(rig, pairs), "");
  EXPECT_EQ(unfolded_because(rig,
                             [&](std::uint32_t rank) {
                               return std::vector{compute(1, rank), all_reduce(2, kMiB, {}, kNames[rank / 2])};
                             }),
            "no two ranks do the same");
}

}  // namespace
}  // namespace orrery::simulate::test::physical_classes_test
