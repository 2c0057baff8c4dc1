// Jobs that share a cluster.
#include "orrery/simulate/merged_jobs.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "orrery/hardware/topology.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/one_collective.hpp"

namespace orrery::simulate::test::merged_jobs_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

// Two switches with two devices each, 1 GB/s; one cable of 0.5 GB/s between the switches.
hardware::Cluster two_switches() {
  hardware::TopologySpec spec;
  spec.kind = hardware::TopologyKind::list;
  spec.link = network::test::plain_link();
  spec.bandwidth = 1_GBps;
  spec.devices = {"a", "b", "c", "d"};
  spec.switches = {"s", "t"};
  spec.links = {{"a", "s"}, {"b", "s"}, {"c", "t"}, {"d", "t"}, {"s", "t", 0.5_GBps, 1}};
  hardware::Cluster cluster;
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  cluster.devices = 4;
  cluster.topology = std::move(spec);
  return cluster;
}

constexpr std::uint64_t kBytes = 1'000'000'000;

PlacedJob ring_of_two(const hardware::Cluster& cluster, std::vector<std::uint32_t> devices,
                      std::uint64_t start_ps = 0) {
  auto part = hardware::scaled(cluster, 2);
  EXPECT_TRUE(part);
  SimulationJob job = one_collective(*part, Collective::all_reduce, kBytes, CollectiveAlgorithm::automatic).job;
  job.files.assign(2, "");
  return {"job", std::move(job), std::move(devices), start_ps};
}

std::vector<double> finish_of(const hardware::Cluster& cluster, const std::vector<PlacedJob>& jobs) {
  const auto simulation = simulate_flows(merged(cluster, jobs));
  EXPECT_TRUE(simulation);
  std::vector<double> finish;
  std::size_t first = 0;
  for (const PlacedJob& job : jobs) {
    finish.push_back(1e-9 * static_cast<double>(simulation->ranks[first].finish_ns));
    first += job.devices.size();
  }
  return finish;
}

// An all-reduce of 1 GB among two sends 1 GB each way: 2 s over the cable, 4 s if two jobs share it, and about 1 s
// without it.
TEST(MergedJobs, jobs_share_the_cable_between_their_devices) {
  const auto cluster = two_switches();
  EXPECT_NEAR(finish_of(cluster, {ring_of_two(cluster, {0, 2})})[0], 2, 0.001);
  const auto both = finish_of(cluster, {ring_of_two(cluster, {0, 2}), ring_of_two(cluster, {1, 3})});
  EXPECT_NEAR(both[0], 4, 0.002);
  EXPECT_NEAR(both[1], 4, 0.002);
  const auto apart = finish_of(cluster, {ring_of_two(cluster, {0, 1}), ring_of_two(cluster, {2, 3})});
  EXPECT_LT(apart[0], 2);
  EXPECT_EQ(apart[0], apart[1]);
}

// The two jobs above: the cable has 1 GB of each, 2 s at 0.5 GB/s, and each call takes 2 s longer because of it. Links
// of devices have 1 GB at 1 GB/s and slow nothing down. Alone, no link does.
TEST(MergedJobs, slowdown_is_charged_to_the_link_that_is_shared) {
  const auto cluster = two_switches();
  const std::vector<PlacedJob> jobs = {ring_of_two(cluster, {0, 2}), ring_of_two(cluster, {1, 3})};
  const auto both = simulate_flows(merged(cluster, jobs));
  ASSERT_TRUE(both);
  ASSERT_EQ(both->link_uses.size(), 2 * 6U);  // for each job 2 devices x 2 directions and the cable's two
  double lost = 0;
  for (const results::LinkUse& use : both->link_uses) {
    const bool is_cable = (use.from == "s" && use.to == "t") || (use.from == "t" && use.to == "s");
    EXPECT_NEAR(1e-12 * static_cast<double>(use.busy_ps), is_cable ? 2 : 1, 0.002);
    if (!is_cable) { EXPECT_EQ(use.lost_ps, 0U); }
    lost += 1e-12 * static_cast<double>(use.lost_ps);
  }
  EXPECT_NEAR(lost, 2 * 2 * 2, 0.01);  // two jobs of two ranks, 2 s each
  const auto alone = simulate_flows(merged(cluster, {jobs[0]}));
  ASSERT_TRUE(alone);
  for (const results::LinkUse& use : alone->link_uses) { EXPECT_EQ(use.lost_ps, 0U); }
}

// The second starts half-way: the first has 1 s of cable left, which takes 2 s; then the second has 1 s left.
TEST(MergedJobs, jobs_that_start_later_share_from_then_on) {
  const auto cluster = two_switches();
  constexpr std::uint64_t kSecond = 1'000'000'000'000;
  const auto finish = finish_of(cluster, {ring_of_two(cluster, {0, 2}), ring_of_two(cluster, {1, 3}, kSecond)});
  EXPECT_NEAR(finish[0], 3, 0.002);
  EXPECT_NEAR(finish[1], 4, 0.002);
  const auto after = finish_of(cluster, {ring_of_two(cluster, {0, 2}), ring_of_two(cluster, {1, 3}, 10 * kSecond)});
  EXPECT_NEAR(after[0], 2, 0.001);
  EXPECT_NEAR(after[1], 12, 0.001);
}

TEST(MergedJobs, placements_are_permutations_of_whole_nodes) {
  const auto cluster = network::test::plain_cluster({4, 2, 3});
  for (const Placement placement : {Placement::packed, Placement::spread, Placement::random}) {
    const auto order = placement_order(cluster, placement, 7);
    EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), 24U);
    for (std::size_t i = 0; i < order.size(); ++i) { EXPECT_EQ(order[i] % 4, i % 4); }
  }
  EXPECT_EQ(placement_order(cluster, Placement::packed, 1)[4], 4U);
  EXPECT_EQ(placement_order(cluster, Placement::spread, 1)[4], 8U);  // the first node of the second block
  EXPECT_NE(placement_order(cluster, Placement::random, 1), placement_order(cluster, Placement::random, 2));
}

// Nodes of two devices; those of the second kind add at 1 % of the memory's rate, which delays an all-reduce.
TEST(MergedJobs, collectives_of_a_job_add_at_the_rate_of_its_own_nodes) {
  hardware::Cluster fast = network::test::plain_cluster({2, 2});
  fast.accelerator.memory_bandwidth = 100_GBps;
  fast.accelerator.memory_efficiency = 1;
  hardware::Cluster slow = fast, both = fast;
  slow.accelerator.memory_bandwidth = 1_GBps;
  both.nodes = {{1, fast.accelerator}, {1, slow.accelerator}};
  const auto jobs = [&] { return std::vector{ring_of_two(fast, {0, 1}), ring_of_two(fast, {2, 3})}; };
  const auto on_fast = finish_of(fast, jobs()), on_slow = finish_of(slow, jobs()), on_both = finish_of(both, jobs());
  EXPECT_EQ(on_both[0], on_fast[0]);
  EXPECT_EQ(on_both[1], on_slow[1]);
  EXPECT_GT(on_slow[0], 1.5 * on_fast[0]);
  const std::vector<PlacedJob> across = {ring_of_two(fast, {0, 2})};
  EXPECT_EQ(finish_of(both, across), finish_of(slow, across));
}

}  // namespace
}  // namespace orrery::simulate::test::merged_jobs_test
