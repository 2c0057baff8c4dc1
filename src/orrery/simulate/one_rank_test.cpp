// Folded runs under ASTRA-sim's rules have the cycles of unfolded ones, or are not folded and say why.
#include "orrery/simulate/one_rank.hpp"

#include <array>
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::one_rank_test {
namespace {

struct Folds {
  int folded = 0, obstacles = 0, void_certificates = 0;
};

Rig any_rig(RandomNumbers& random) {
  const std::vector<std::string> names = {"ring", "ring", "direct", "direct2", "halvingDoubling", "direct"};
  std::vector<std::pair<Wiring, std::uint32_t>> shape;
  std::vector<std::string> algorithms;
  const std::uint32_t dimensions = 1 + random.below(3);
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::string& name = names[random.below(static_cast<std::uint32_t>(names.size()))];
    const std::uint32_t most = dimensions == 1 ? 8 : 4;
    shape.emplace_back(static_cast<Wiring>(random.below(3)), name == "halvingDoubling"
                                                                 ? 2U << random.below(dimensions == 1 ? 3 : 2)
                                                                 : 2 + random.below(most));
    algorithms.push_back(name);
  }
  Rig rig(shape, algorithms);
  for (RigDimension& dimension : rig.dimensions) {  // equal ones often: then events of several dimensions meet
    if (random.below(3) == 0) { dimension.bandwidth = 25; }
    if (random.below(3) == 0) { dimension.latency_ns = random.below(3) * 10; }
  }
  rig.chunks(1 + random.below(8), 1 + random.below(4), 1 + random.below(3));
  rig.system.optimization = static_cast<Optimization>(random.below(2));
  rig.system.endpoint_delay_ns = random.below(3) * 10;
  rig.system.local_memory_gb = random.below(3) * 100;
  if (dimensions == 1 && random.below(2) == 0) { rig.aware(); }
  if (random.below(3) == 0) { rig.memory = {memory::Arrangement::PER_NPU_MEMORY_EXPANSION, 100, 50, 2}; }
  return rig;
}

std::vector<NodeRecord> any_nodes(RandomNumbers& random, bool has_memory) {
  std::vector<NodeRecord> nodes;
  const std::uint64_t count = 1 + random.below(8);
  for (std::uint64_t id = 1; id <= count; ++id) {
    std::vector<std::uint64_t> parents;
    if (id > 1 && random.below(3) != 0) { parents.push_back(1 + random.below(static_cast<std::uint32_t>(id - 1))); }
    const std::uint32_t kind = random.below(7);
    const std::int64_t bytes = 64 + random.below(1U << (4 + random.below(18)));
    if (kind == 0) {
      nodes.push_back(compute(id, random.below(30), parents));
    } else if (kind == 1) {
      nodes.push_back(on_host(compute(id, random.below(30), parents)));
    } else if (kind == 2 && has_memory) {
      nodes.push_back(memory_access(id, NodeType::mem_load, bytes, parents));
    } else {
      const auto type = static_cast<CollectiveType>(std::array{0, 0, 2, 6, 7}[random.below(5)]);
      nodes.push_back(collective(id, type, bytes, parents));
    }
  }
  return nodes;
}

void expect_same(const SimulationJob& job, Folds& folds, std::uint64_t seed) {
  const auto all = simulate(job);
  const auto one = simulate_folded(job);
  ASSERT_EQ(all.has_value(), one.has_value()) << seed;
  if (!all) {
    ASSERT_EQ(all.error().text(), one.error().text()) << seed;
    return;
  }
  const std::string& why = one->unfolded_because;
  ASSERT_EQ(one->simulation.simulated_ranks, why.empty() ? 1 : job.network.ranks()) << seed;
  if (why.empty()) {
    ++folds.folded;
  } else {
    ++(why.starts_with("the order of ranks may matter") ? folds.void_certificates : folds.obstacles);
  }
  ASSERT_EQ(one->simulation.warnings, all->warnings) << seed;
  ASSERT_EQ(one->simulation.ranks, all->ranks) << seed;
}

// ORRERY_ASTRA_FOLD_JOBS=N runs N jobs.
TEST(OneRank, folded_ranks_have_the_cycles_of_unfolded_ones) {
  const char* more = std::getenv("ORRERY_ASTRA_FOLD_JOBS");
  const std::uint64_t jobs = more != nullptr ? std::strtoull(more, nullptr, 10) : orrery::test::cases(3000U);
  Folds folds;
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    RandomNumbers random(seed);
    const Rig rig = any_rig(random);
    const auto nodes = any_nodes(random, rig.memory.arrangement != memory::Arrangement::NO_MEMORY_EXPANSION);
    const auto job = job_of(rig, [&](std::uint32_t) { return nodes; });
    if (!job) { continue; }
    expect_same(*job, folds, seed);
    ASSERT_FALSE(HasFailure()) << seed;
  }
  std::cout << "  " << folds.folded << " folded, " << folds.void_certificates << " with a void certificate, "
            << folds.obstacles << " with an obstacle, of " << jobs << "\n";
  EXPECT_GT(folds.folded, static_cast<int>(jobs) / 4);
  EXPECT_GT(folds.void_certificates, static_cast<int>(jobs) / 100);
  EXPECT_GT(folds.obstacles, static_cast<int>(jobs) / 100);
}

// No certificate is needed: physical rules do not know rank numbers.
TEST(OneRank, on_physical_links_folded_ranks_have_the_times_of_unfolded_ones) {
  Folds folds;
  const std::uint64_t jobs = orrery::test::cases(1500U);
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    RandomNumbers random(seed + 50000);
    Rig rig = any_rig(random);
    rig.physical();
    const auto nodes = any_nodes(random, rig.memory.arrangement != memory::Arrangement::NO_MEMORY_EXPANSION);
    auto job = job_of(rig, [&](std::uint32_t) { return nodes; });
    if (!job) { continue; }
    job->tables = job->spans = false;
    expect_same(*job, folds, seed);
    ASSERT_FALSE(HasFailure()) << seed;
  }
  EXPECT_EQ(folds.void_certificates, 0);
  EXPECT_GT(folds.folded, static_cast<int>(jobs) / 3);
  EXPECT_GT(folds.obstacles, static_cast<int>(jobs) / 20);
}

std::string unfolded_because(const Rig& rig, const Nodes& nodes) {
  const auto job = job_of(rig, nodes);
  if (!job) { throw std::runtime_error(job.error().text()); }
  const auto folded = simulate_folded(*job);
  if (!folded) { throw std::runtime_error(folded.error().text()); }
  EXPECT_EQ(folded->simulation.ranks, simulate(*job)->ranks);
  return folded->unfolded_because;
}

// Chunks in both directions of a ring: at the end of a phase, a rank hears from both neighbours at one instant, and
// which of them comes first depends on rank numbers.
TEST(OneRank, a_job_in_which_the_order_of_ranks_matters_is_not_folded) {
  Rig both({{Wiring::ring, 8}}, {"ring"});
  both.chunks(4, 2, 2);
  both.system.optimization = Optimization::baseline;
  const auto why = unfolded_because(both, [](std::uint32_t) { return std::vector{all_reduce(1, kMiB)}; });
  EXPECT_TRUE(why.starts_with("the order of ranks may matter at ")) << why;
  Rig one({{Wiring::ring, 8}}, {"ring"});
  one.chunks(4, 2, 1);
  EXPECT_EQ(unfolded_because(one, [](std::uint32_t) { return std::vector{all_reduce(1, kMiB)}; }), "");
}

TEST(OneRank, jobs_whose_ranks_differ_are_not_folded) {
  const auto reduce = [](std::uint32_t) { return std::vector{all_reduce(1, kMiB)}; };
  Rig ring({{Wiring::ring, 4}}, {"ring"});
  EXPECT_EQ(unfolded_because(ring,
                             [](std::uint32_t rank) {
                               return std::vector{compute(1, rank == 3 ? 2 : 1), all_reduce(2, kMiB, {1})};
                             }),
            "the graphs of ranks 0 and 3 differ");
  EXPECT_EQ(unfolded_because(ring,
                             [](std::uint32_t rank) {
                               return std::vector{rank % 2 == 0 ? send(1, rank + 1, 64) : receive(1, rank - 1, 64)};
                             }),
            "node 1 is a message between two ranks");
  ring.groups = {{"1", {0, 1}}, {"2", {2, 3}}};
  EXPECT_EQ(unfolded_because(
                ring, [](std::uint32_t rank) { return std::vector{all_reduce(1, kMiB, {}, rank < 2 ? "1" : "2")}; }),
            "node 1 is a collective of a process group");
  EXPECT_EQ(unfolded_because(Rig({{Wiring::mesh, 4}}, {"doubleBinaryTree"}), reduce),
            "a doubleBinaryTree has roots and leaves");
  Rig hub({{Wiring::switched, 4}}, {"direct"});
  EXPECT_EQ(unfolded_because(hub.aware(), reduce), "messages of several ranks share the links of a Switch");
  Rig far({{Wiring::ring, 4}}, {"direct"});
  EXPECT_EQ(unfolded_because(far.aware(), reduce), "messages of direct share links of a ring");
  Rig pool({{Wiring::ring, 4}}, {"ring"});
  pool.memory = {memory::Arrangement::MEMORY_POOL, 100, 50, 4};
  EXPECT_EQ(
      unfolded_because(pool, [](std::uint32_t) { return std::vector{memory_access(1, NodeType::mem_load, 4096)}; }),
      "ranks share a memory that serves them one by one");
}

// 2 x 16,383 steps of a chunk, and so many more of three others, of one rank in place of 16,384.
TEST(OneRank, a_ring_of_many_ranks_costs_what_one_rank_costs) {
  Rig rig({{Wiring::ring, 16384}}, {"ring"});
  rig.chunks(4);
  SimulationJob job =
      *job_of(Rig({{Wiring::ring, 2}}, {"ring"}), [](std::uint32_t) { return std::vector{all_reduce(1, 64 * kMiB)}; });
  job.network.dimensions.front().ranks = 16384;
  const RankGraph graph = job.rank_graphs[0];
  job.rank_graphs.assign(16384, graph);
  const auto folded = simulate_folded(job);
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->unfolded_because, "");
  EXPECT_EQ(folded->simulation.ranks.size(), 16384U);
  // Slot k: 10 ns, then a flight of 500 + 4096 / (50 x 1.073741824) = 576 ns. At 1600 GB/s, 4096 B are reduced in 3 x 2
  // ns at the first 16,383 receives, before the next message.
  EXPECT_EQ(folded->simulation.ranks[5].finish_ns, 10U + 2 * 16383U * (576 + 10) + 16383U * 6);
}

}  // namespace
}  // namespace orrery::simulate::test::one_rank_test
