// The critical path through chunks and links: hand cases, and laws on random jobs under both semantics.
#include "orrery/simulate/link_path.hpp"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::link_path_test {
namespace {

using Graphs = std::vector<std::vector<NodeRecord>>;

constexpr std::uint64_t kMicrosecond = 1'000'000;  // picoseconds
constexpr std::int64_t kMegabyte = 1'000'000;      // 20 us at 50 GB/s

results::Simulation explained(const Rig& rig, const Graphs& graphs) {
  auto job = job_of(rig, [&](std::uint32_t rank) { return graphs[rank]; });
  if (!job) { throw std::runtime_error(job.error().text()); }
  job->explain = job->spans = true;
  job->tables = false;
  auto result = simulate(*job);
  if (!result) { throw std::runtime_error(result.error().text()); }
  return std::move(*result);
}

std::map<std::string, std::uint64_t> parts_of(const results::CriticalPath& path) {
  std::map<std::string, std::uint64_t> parts;
  for (const auto& part : path.parts) { parts[part.name] = part.time_ps; }
  return parts;
}

Rig full_mesh(std::uint32_t ranks) { return Rig({{Wiring::mesh, ranks}}, {"ring"}).physical(); }

// ---- hand cases ----------------------------------------------------------------------------------------------------

// Two messages of 1 MB on one link: the second is sent at 6 us and waits until 25 us.
TEST(LinkPath, a_message_waits_for_the_message_that_has_its_link) {
  const auto path =
      *explained(full_mesh(2),
                 {{compute(1, 5), send(2, 1, kMegabyte, {1}), send(3, 1, kMegabyte, {4}), compute(4, 1, {1})},
                  {receive(1, 0, kMegabyte), receive(2, 0, kMegabyte)}})
           .path;
  ASSERT_EQ(path.steps.size(), 3U);
  EXPECT_EQ(path.steps[1].node, 2U);
  EXPECT_EQ(path.steps[1].name, "rank 0 to rank 1, which others wait for");
  EXPECT_EQ(path.steps[2].node, 3U);
  EXPECT_EQ(path.steps[2].start_ps, 25 * kMicrosecond);
  const auto parts = parts_of(path);
  EXPECT_EQ(parts.at("compute"), 5 * kMicrosecond);
  EXPECT_EQ(parts.at("waiting for links of FullyConnected 0"), 20 * kMicrosecond);
  EXPECT_EQ(parts.at("bandwidth of FullyConnected 0"), 20 * kMicrosecond);
  EXPECT_EQ(parts.at("latency of FullyConnected 0"), kMicrosecond / 2);
  ASSERT_EQ(path.links.size(), 1U);
  EXPECT_EQ(path.links[0].from, "rank 0");
  EXPECT_EQ(path.links[0].time_ps, 40 * kMicrosecond + kMicrosecond / 2);
}

// Ring of 3, 3 MB in one chunk: 4 steps of 1 MB, each 20 us, 500 ns and 10 ns of endpoint delay; rank 2 comes last, at
// 7 us. Two reductions of 3 x 1 MB at 1600 GB/s: 1875 ns.
TEST(LinkPath, a_collective_is_its_steps) {
  Graphs graphs(3, {compute(1, 1), all_reduce(2, 3 * kMegabyte, {1})});
  graphs[2][0] = compute(1, 7);
  const auto simulation = explained(Rig({{Wiring::ring, 3}}, {"ring"}).physical(), graphs);
  const results::CriticalPath& path = *simulation.path;
  const auto parts = parts_of(path);
  EXPECT_EQ(path.steps.front().rank, 2U);
  EXPECT_EQ(parts.at("compute"), 7 * kMicrosecond);
  EXPECT_EQ(parts.at("bandwidth of Ring 0"), 80 * kMicrosecond);
  EXPECT_EQ(parts.at("latency of Ring 0"), 2 * kMicrosecond);
  EXPECT_EQ(parts.at("endpoint delay"), 40'000U);
  EXPECT_EQ(path.steps[1].name, "chunk 0, step 0: rank 2 to rank 0");
  EXPECT_EQ(path.steps.back().name, "chunk 0, step 3: rank 2 to rank 0");
}

// ASTRA-sim's rules, Ring of 4: 10 + 6 (5382 + 10) + 3 x 489 (collectives_test).
TEST(EventPath, a_ring_is_its_messages_endpoints_and_reductions) {
  const auto simulation = explained(Rig({{Wiring::ring, 4}}, {"ring"}), Graphs(4, {all_reduce(1, kMiB)}));
  const auto parts = parts_of(*simulation.path);
  EXPECT_EQ(parts.at("endpoint delay"), 7U * 10'000);
  EXPECT_EQ(parts.at("reduction of arriving data"), 3U * 489'000);
  EXPECT_EQ(parts.at("latency of Ring 0"), 6U * 500'000);
  EXPECT_EQ(parts.at("bandwidth of Ring 0"), 6U * 4'882'000);
  EXPECT_EQ(simulation.path->end_ps(), simulation.makespan_ns() * 1000);
}

// Two senders to one rank over a switch with congestion: the link from the switch carries one after the other.
TEST(EventPath, a_message_waits_for_a_link_of_a_switch) {
  Rig rig = Rig({{Wiring::switched, 3}}, {"ring"}).aware();
  const auto path =
      *explained(rig, {{receive(1, 1, kMiB), receive(2, 2, kMiB)}, {send(1, 0, kMiB)}, {send(1, 0, kMiB)}}).path;
  bool waits = false;
  for (const auto& step : path.steps) {
    waits = waits || step.name == "the switch to rank 0: occupied by another message";
  }
  EXPECT_TRUE(waits);
}

// ---- laws ----------------------------------------------------------------------------------------------------------

std::uint32_t below(std::uint32_t end) { return *rc::gen::inRange<std::uint32_t>(0, end); }

Rig any_rig(std::uint32_t most_dimensions, bool is_power) {
  static const std::vector<std::string> names = {"ring", "direct", "direct2", "halvingDoubling", "doubleBinaryTree"};
  std::vector<std::pair<Wiring, std::uint32_t>> shape;
  std::vector<std::string> algorithms;
  const std::uint32_t dimensions = 1 + below(most_dimensions);
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    shape.emplace_back(static_cast<Wiring>(below(3)), is_power ? 2U << below(2) : 2 + below(3));
    algorithms.push_back(names[below(is_power ? 5 : 3)]);
  }
  Rig rig(shape, algorithms);
  rig.chunks(1 + below(4), 1 + below(3), 1 + below(2));
  rig.system.local_memory_gb = below(2) * 1600;
  rig.system.scheduling = static_cast<Scheduling>(below(3));
  rig.system.endpoint_delay_ns = 10 * (1 + below(2));
  return rig;
}

// All-reduces of all ranks, kernels of random lengths, and messages to the next rank.
// `is_chain`: nodes of a rank run one after the other, so that all ranks reach collectives in one order.
Graphs any_graphs(std::uint32_t ranks, bool is_chain) {
  Graphs graphs(ranks);
  const auto add = [&](std::uint32_t rank, NodeRecord made) {
    if (!graphs[rank].empty() && (is_chain || below(4) != 0)) { made.data_deps = {graphs[rank].back().id}; }
    made.id = graphs[rank].size() + 1;
    graphs[rank].push_back(std::move(made));
  };
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t what = below(3);
    if (what == 0) {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) { add(rank, compute(1, 1 + below(200))); }
    } else if (what == 1) {
      const std::int64_t bytes = 100'000 * (1 + below(30));
      for (std::uint32_t rank = 0; rank < ranks; ++rank) { add(rank, all_reduce(1, bytes)); }
    } else {
      const std::uint32_t from = below(ranks), to = (from + 1) % ranks;
      const std::int64_t bytes = 1000 * (i + 1) + 7;
      add(from, send(1, to, bytes));
      add(to, receive(1, from, bytes));
    }
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) { add(rank, all_reduce(1, 64'000)); }
  return graphs;
}

std::uint32_t ranks_of(const Rig& rig) {
  std::uint32_t ranks = 1;
  for (const auto& dimension : rig.dimensions) { ranks *= dimension.ranks; }
  return ranks;
}

// Steps follow each other from 0 to the end of the run; activities and parts add up to it.
void check(const results::Simulation& simulation) {
  const results::CriticalPath& path = *simulation.path;
  std::uint64_t at = 0, activities = 0, parts = 0;
  for (const auto& step : path.steps) {
    RC_ASSERT(step.start_ps == at);
    RC_ASSERT(step.end_ps > step.start_ps);
    at = step.end_ps;
    const bool is_collective = path.activities[step.activity].name.starts_with("all_reduce");
    RC_ASSERT(!is_collective || step.name.starts_with("chunk "));
  }
  for (const auto& row : path.activities) { activities += row.on_path_ps; }
  for (const auto& part : path.parts) { parts += part.time_ps; }
  RC_ASSERT(activities == at);
  RC_ASSERT(parts == at);
  RC_ASSERT((at + 999) / 1000 == simulation.makespan_ns());
}

RC_GTEST_PROP(LinkPathLaw, the_path_is_the_run_on_physical_links, ()) {
  Rig rig = any_rig(3, true);
  rig.physical();
  check(explained(rig, any_graphs(ranks_of(rig), false)));
}

RC_GTEST_PROP(EventPathLaw, the_path_is_the_run_under_astra_sims_rules, ()) {
  const bool is_aware = below(2) == 0;
  Rig rig = any_rig(is_aware ? 1 : 2, below(2) == 0);
  if (is_aware) { rig.aware(); }
  check(explained(rig, any_graphs(ranks_of(rig), true)));
}

}  // namespace
}  // namespace orrery::simulate::test::link_path_test
