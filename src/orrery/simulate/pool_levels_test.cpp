// Memory accesses to a pool behind switches.
#include "orrery/simulate/pool_levels.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::pool_levels_test {
namespace {

using network::test::plain_cluster;
using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using Lists = std::vector<std::vector<NodeRecord>>;

constexpr std::int64_t kMegabyte = 1'000'000;

// Four devices of 4 GB/s, two to a node with 6 GB/s, and a pool of three memories of 2 GB/s for all. No latency.
hardware::Cluster pooled_cluster(bool combines = false) {
  hardware::Cluster cluster = plain_cluster({4});
  cluster.second_tier.memory = 1_GiB;
  cluster.second_tier.bandwidth = 4_GBps;
  cluster.second_tier.levels = {{"node", 2, 1, 6_GBps, combines}, {"memories", 4, 3, 2_GBps, combines}};
  return cluster;
}

results::Simulation run(const hardware::Cluster& cluster, const Lists& nodes, std::vector<Group> groups = {}) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  job.groups = std::move(groups);
  job.spans = job.explain = job.tables = true;
  auto simulation = simulate_flows(unfolded(cluster, with_graphs(std::move(job), nodes)));
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  return *simulation;
}

// Finish times in microseconds.
std::vector<double> finish(const hardware::Cluster& cluster, const Lists& nodes, std::vector<Group> groups = {}) {
  std::vector<double> times;
  const results::Simulation simulation = run(cluster, nodes, std::move(groups));
  for (const auto& rank : simulation.tables->ranks) { times.push_back(static_cast<double>(rank.finish_ps) * 1e-6); }
  return times;
}

NodeRecord load(std::int64_t bytes, std::string_view group = {}) {
  NodeRecord made = memory_access(1, NodeType::mem_load, bytes);
  if (!group.empty()) { made.attributes.push_back({keys::pg_name, Value::text(group), {}, {}}); }
  return made;
}
NodeRecord store(std::int64_t bytes) { return memory_access(2, NodeType::mem_store, bytes); }
NodeRecord idle() { return compute(9, 1); }

// One device: its own link, 4 GB/s. Two of a node: 6 GB/s for both. All four: 6 GB/s of the pool, 1.5 GB/s each.
TEST(Pool, every_level_is_shared_fairly) {
  const auto cluster = pooled_cluster();
  EXPECT_NEAR(finish(cluster, {{load(12 * kMegabyte)}, {idle()}, {idle()}, {idle()}})[0], 3000.0, 0.01);
  EXPECT_NEAR(finish(cluster, {{load(12 * kMegabyte)}, {load(12 * kMegabyte)}, {idle()}, {idle()}})[0], 4000.0, 0.01);
  for (const double time : finish(cluster, Lists(4, {load(12 * kMegabyte)}))) { EXPECT_NEAR(time, 8000.0, 0.01); }
  EXPECT_EQ(cluster.second_tier.rate(), 1.5_GBps);
}

TEST(Pool, loads_and_stores_do_not_meet) {
  const auto times = finish(pooled_cluster(), Lists(4, {load(12 * kMegabyte), store(12 * kMegabyte)}));
  EXPECT_NEAR(times[3], 8000.0, 0.01);
}

// Two devices of different nodes load less than the other two: 1.5 GB/s each until they have 3 MB, at 2,000 us; then
// the others have 3 GB/s, for the 9 MB that they lack.
TEST(Pool, what_others_leave_is_used) {
  const auto times = finish(
      pooled_cluster(), {{load(12 * kMegabyte)}, {load(3 * kMegabyte)}, {load(12 * kMegabyte)}, {load(3 * kMegabyte)}});
  EXPECT_NEAR(times[1], 2000.0, 0.01);
  EXPECT_NEAR(times[0], 5000.0, 0.01);
}

// All four load the same 12 MB: the pool and each node's link have them once, each device has them on its own link.
TEST(Pool, switches_multicast_what_a_group_loads) {
  const std::vector<Group> groups = {{"all", {0, 1, 2, 3}}};
  const Lists nodes(4, {load(12 * kMegabyte, "all")});
  EXPECT_NEAR(finish(pooled_cluster(true), nodes, groups)[0], 3000.0, 0.01);
  EXPECT_NEAR(finish(pooled_cluster(false), nodes, groups)[0], 8000.0, 0.01);
  // Only nodes combine: the pool has 12 MB for each node, at 6 GB/s for both.
  hardware::Cluster nodes_only = pooled_cluster(true);
  nodes_only.second_tier.levels[1].combines = false;
  EXPECT_NEAR(finish(nodes_only, nodes, groups)[0], 4000.0, 0.01);
}

TEST(Pool, the_path_names_the_level_that_limits) {
  const auto simulation = run(pooled_cluster(), {{load(12 * kMegabyte)}, {idle()}, {idle()}, {idle()}});
  ASSERT_FALSE(simulation.path->parts.empty());
  EXPECT_EQ(simulation.path->parts.front().name, "bandwidth of the second tier");
  hardware::Cluster slow = pooled_cluster();
  slow.second_tier.levels[1].bandwidth = 1_GBps;
  const auto limited = run(slow, {{load(12 * kMegabyte)}, {idle()}, {idle()}, {idle()}});
  EXPECT_EQ(limited.path->parts.front().name, "bandwidth of memories");
}

// Never earlier than any level allows, and one of them is busy until the last access ends.
RC_GTEST_PROP(PoolLaw, the_last_access_ends_when_the_busiest_level_or_link_is_done, ()) {
  const auto cluster = pooled_cluster();
  const auto bytes = *rc::gen::inRange<std::int64_t>(1, 100);
  const auto users = *rc::gen::inRange<std::uint32_t>(1, 5);
  Lists nodes(4, {idle()});
  for (std::uint32_t rank = 0; rank < users; ++rank) { nodes[rank] = {load(bytes * kMegabyte)}; }
  const auto times = finish(cluster, nodes);
  const double each = static_cast<double>(bytes) * 1000.0;  // us at 1 GB/s
  const double in_node = std::min(users, 2U);
  const double bound = std::max({each / 4, in_node * each / 6, users * each / 6});
  RC_ASSERT(std::abs(*std::max_element(times.begin(), times.end()) - bound) < 1e-4 * bound);
}

}  // namespace
}  // namespace orrery::simulate::test::pool_levels_test
