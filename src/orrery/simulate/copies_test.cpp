// Jobs with copies of their ranks: groups, peers, sizes; laws.
#include "orrery/simulate/copies.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::copies_test {
namespace {

// Ranks 0 and 1 are a pair that communicates by messages and as group "1"; rank r is alone in group "2" or "3".
SimulationJob pair_of_ranks(const hardware::Cluster& cluster) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  job.tables = job.spans = true;
  job.network.dimensions = {{Wiring::switched, 2}};
  job.groups = {{"1", {0, 1}}, {"2", {0}}, {"3", {1}}};
  const auto nodes = [](NodeRecord message, std::string_view alone) -> std::vector<NodeRecord> {
    return {compute(1, 100), std::move(message), all_reduce(3, 1'000'000, {2}, "1"),
            collective(4, CollectiveType::all_gather, 1'000'001, {3}, alone), all_reduce(5, 1'000, {4})};
  };
  job = with_graphs(std::move(job), {nodes(send(2, 1, 4096, {1}), "2"), nodes(receive(2, 0, 4096, {1}), "3")});
  job.network = machine_on(cluster).network;
  return job;
}

const std::vector<std::string> kGrown = {"2", "3"};

TEST(Copies, have_groups_and_peers_of_their_own) {
  SimulationJob job = pair_of_ranks(network::test::plain_cluster({6}));
  ASSERT_TRUE(copy_ranks(job, 3, kGrown));
  ASSERT_EQ(job.rank_graphs.size(), 6U);
  ASSERT_EQ(job.groups.size(), 5U);  // three of "1", and two that grow
  EXPECT_EQ(job.groups[0].ranks, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(job.groups[2].name, "1.2");
  EXPECT_EQ(job.groups[2].ranks, (std::vector<std::uint32_t>{4, 5}));
  EXPECT_EQ(job.groups[3].ranks, (std::vector<std::uint32_t>{0, 2, 4}));
  EXPECT_EQ(job.groups[4].ranks, (std::vector<std::uint32_t>{1, 3, 5}));
  const auto& nodes = job.rank_graphs[4].nodes;
  EXPECT_EQ(nodes[1].peer, 5U);
  EXPECT_EQ(nodes[2].group, 3U);
  EXPECT_EQ(nodes[2].amount, 1'000'000U);
  EXPECT_EQ(nodes[3].group, 4U);
  EXPECT_EQ(nodes[3].amount, 333'334U);  // a shard of three
  EXPECT_EQ(nodes[4].group, kWholeMachine);
}

// Compute of every rank stays. Copies that share no group end when the original does, on links of their own.
TEST(CopiesLaw, computation_stays_and_copies_are_alike) {
  const auto cluster = network::test::plain_cluster({2, 3});
  SimulationJob job = pair_of_ranks(cluster);
  ASSERT_TRUE(copy_ranks(job, 3, kGrown));
  const auto simulation = simulate_flows(unfolded(cluster, std::move(job)));
  ASSERT_TRUE(simulation);
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(simulation->tables->ranks[rank].compute_ps, 100'000'000U);
    EXPECT_EQ(simulation->tables->ranks[rank].finish_ps, simulation->tables->ranks[rank % 2].finish_ps);
  }
}

TEST(Copies, one_is_the_job_itself) {
  const auto cluster = network::test::plain_cluster({2});
  SimulationJob job = pair_of_ranks(cluster), copied = pair_of_ranks(cluster);
  ASSERT_TRUE(copy_ranks(copied, 1, kGrown));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.rank_graphs[rank].nodes, copied.rank_graphs[rank].nodes);
  }
}

TEST(Copies, of_unknown_groups_are_refused) {
  SimulationJob job = pair_of_ranks(network::test::plain_cluster({4}));
  const auto copied = copy_ranks(job, 2, std::vector<std::string>{"4"});
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().text(), "--grow: \"4\" is not a process group of the graphs; valid: 1, 2, 3");
}

}  // namespace
}  // namespace orrery::simulate::test::copies_test
