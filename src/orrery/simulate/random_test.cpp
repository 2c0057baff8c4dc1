// Laws of all jobs, on random networks, systems and graphs.
#include <array>
#include <iostream>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::random_test {
namespace {

Rig rig_of(RandomNumbers& random) {
  const std::vector<std::string> names = {"ring",    "direct",          "direct1",         "direct2",
                                          "direct3", "halvingDoubling", "doubleBinaryTree"};
  std::vector<std::pair<Wiring, std::uint32_t>> shape;
  std::vector<std::string> algorithms;
  const std::uint32_t dimensions = 1 + random.below(3);
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    shape.emplace_back(static_cast<Wiring>(random.below(3)), 2U << random.below(dimensions == 1 ? 3 : 2));
    algorithms.push_back(names[random.below(static_cast<std::uint32_t>(names.size()))]);
  }
  Rig rig(shape, algorithms);
  rig.chunks(1 + random.below(8), 1 + random.below(4), 1 + random.below(3));
  rig.system.optimization = static_cast<Optimization>(random.below(2));
  rig.system.endpoint_delay_ns = random.below(20);
  rig.system.local_memory_gb = random.below(2) * 100;
  rig.system.rendezvous = random.below(4) == 0;
  if (dimensions == 1 && random.below(2) == 0) { rig.aware(); }
  if (random.below(4) == 0) { rig.system.bus = SharedBus{random.below(10), random.below(5), random.below(5), 0.01F}; }
  rig.memory = {static_cast<memory::Arrangement>(1 + random.below(3)), 100, 50, 2};
  rig.groups = {{"1", {0, 1}}};
  return rig;
}

// The same nodes on every rank, except for the durations of compute nodes, which come from `own`.
std::vector<NodeRecord> nodes_of(RandomNumbers shared, RandomNumbers own, std::uint32_t rank) {
  std::vector<NodeRecord> nodes;
  for (std::uint64_t id = 1; id < 12; ++id) {
    std::vector<std::uint64_t> parents;
    if (id > 1 && shared.below(3) != 0) { parents.push_back(1 + shared.below(static_cast<std::uint32_t>(id - 1))); }
    const std::uint32_t kind = shared.below(8);
    const std::int64_t bytes = 1 + shared.below(1U << (4 + shared.below(18)));
    const auto type = static_cast<CollectiveType>(std::array{0, 2, 6, 7}[shared.below(4)]);
    const bool tree_only = type != CollectiveType::all_reduce;
    if (kind < 3) {
      nodes.push_back(compute(id, own.below(30), parents));
    } else if (kind == 3) {
      nodes.push_back(on_host(compute(id, own.below(30), parents)));
    } else if (kind == 4) {
      nodes.push_back(memory_access(id, NodeType::mem_load, bytes, parents));
    } else if (kind == 5 && rank < 2) {
      nodes.push_back(rank == 0 ? send(id, 1, bytes, parents) : receive(id, 0, bytes, parents));
    } else if (kind == 5) {
      nodes.push_back(compute(id, 1, parents));
    } else {
      nodes.push_back(
          collective(id, tree_only && shared.below(3) != 0 ? CollectiveType::all_reduce : type, bytes + 64, parents));
    }
  }
  return nodes;
}

std::string outcome(const Result<results::Simulation>& result) {
  if (!result) { return result.error().text(); }
  std::string text;
  for (const auto& rank : result->ranks) {
    text += std::to_string(rank.finish_ns) + " " + std::to_string(rank.exposed_comm_ns) + "\n";
  }
  return text;
}

// A rank runs one collective at a time, so the scheduling policy never has a choice. Other ids in the same order change
// nothing. Every job has a result or an error.
TEST(Random, the_outcome_depends_neither_on_the_policy_nor_on_ids_except_for_their_order) {
  int finished = 0;
  constexpr std::uint64_t kJobs = orrery::test::cases(400);
  for (std::uint64_t seed = 1; seed <= kJobs; ++seed) {
    RandomNumbers random(seed);
    Rig rig = rig_of(random);
    const auto nodes = [&](std::uint32_t rank) {
      return nodes_of(RandomNumbers(seed), RandomNumbers(seed * 1000 + rank), rank);
    };
    const auto lifo = run(rig, nodes);
    finished += lifo ? 1 : 0;
    rig.system.scheduling = Scheduling::FIFO;
    ASSERT_EQ(outcome(lifo), outcome(run(rig, nodes))) << seed;
    if (!lifo) { continue; }
    const auto renamed = run(rig, [&](std::uint32_t rank) {
      auto others = nodes(rank);
      for (NodeRecord& record : others) {
        record.id = record.id * 7 + 100;
        for (std::uint64_t& parent : record.data_deps) { parent = parent * 7 + 100; }
      }
      return others;
    });
    ASSERT_EQ(outcome(lifo), outcome(renamed)) << seed;
  }
  EXPECT_GT(finished, static_cast<int>(kJobs) / 4);
  std::cout << "  " << finished << " of " << kJobs << " jobs finish\n";
}

// Tables are computed after the run from the spans of nodes. They agree with what the machine counted during the run,
// and the exposed times and the idle time add up to the finish time.
TEST(Random, tables_change_nothing_and_their_times_add_up) {
  int finished = 0;
  constexpr std::uint64_t kJobs = 300;
  for (std::uint64_t seed = 1; seed <= kJobs; ++seed) {
    RandomNumbers random(seed);
    const Rig rig = rig_of(random);
    auto job = job_of(rig, [&](std::uint32_t rank) {
      return nodes_of(RandomNumbers(seed), RandomNumbers(seed * 1000 + rank), rank);
    });
    if (!job) { continue; }
    const auto plain = simulate(*job);
    job->spans = job->tables = true;
    const auto counted = simulate(*job);
    ASSERT_EQ(outcome(plain), outcome(counted)) << seed;
    if (!counted) { continue; }
    ++finished;
    for (std::size_t rank = 0; rank < counted->ranks.size(); ++rank) {
      const results::RankTimes& times = counted->tables->ranks[rank];
      const results::SimulatedRank& result = counted->ranks[rank];
      ASSERT_EQ(times.idle_ps, result.idle_ns * 1000) << seed << " rank " << rank;
      ASSERT_EQ(times.finish_ps, result.finish_ns * 1000);
      ASSERT_EQ(times.compute_ps, result.compute_ns * 1000);
      ASSERT_EQ(
          times.compute_ps + times.exposed_comm_ps + times.exposed_memory_ps + times.exposed_host_ps + times.idle_ps,
          times.finish_ps);
      ASSERT_LE(times.exposed_comm_ps, times.comm_ps);
      ASSERT_LE(times.exposed_memory_ps, times.memory_ps);
      ASSERT_LE(times.exposed_host_ps, times.host_ps);
      ASSERT_LE(times.waiting_ps, times.idle_ps);
    }
    std::uint64_t messages = 0;
    for (const auto& dimension : counted->tables->dimensions) { messages += dimension.messages.value(); }
    ASSERT_EQ(messages, counted->messages) << seed;
    ASSERT_EQ(counted->tables->operators.size(), counted->nodes);
  }
  EXPECT_GT(finished, static_cast<int>(kJobs) / 4);
}

}  // namespace
}  // namespace orrery::simulate::test::random_test
