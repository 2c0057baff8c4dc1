// Collectives of graphs in the switches of a topology: closed form == call of a graph == every chunk simulated; limits.
#include "orrery/simulate/switch_calls.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "orrery/hardware/topology.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/price_cache.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/message_flows.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/one_collective.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::switch_calls_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

// 16 devices below 4 leaves and 2 spines, 1 GB/s, with switches that reduce.
hardware::Cluster cluster_with(const hardware::InSwitchLimits& limits) {
  hardware::TopologySpec spec;
  spec.down = {4, 4};
  spec.up = {1, 2};
  spec.link = network::test::plain_link();
  spec.link.in_switch_efficiency = 0;
  spec.bandwidth = 1_GBps;
  spec.in_switch = limits;
  hardware::Cluster cluster;
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  for (auto& dimension : cluster.dimensions) { dimension.most = dimension.size; }
  cluster.devices = hardware::device_count(spec);
  cluster.topology = std::move(spec);
  return cluster;
}

constexpr std::array kOperations = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                    Collective::all_to_all, Collective::broadcast};

results::Simulation run(const FlowJob& job) {
  auto simulation = simulate_flows(job);
  EXPECT_TRUE(simulation);
  return std::move(*simulation);
}

TEST(SwitchCallsLaw, closed_form_equals_the_call_of_a_graph_and_every_chunk_simulated) {
  for (const hardware::InSwitchLimits& limits :
       {hardware::InSwitchLimits{}, hardware::InSwitchLimits{1, 1_MiB, 1.5_GBps}}) {
    const hardware::Cluster cluster = cluster_with(limits);
    for (const Collective op : kOperations) {
      for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{16'000'000}}) {
        const auto size = Bytes(static_cast<double>(bytes));
        const auto closed = switch_time(cluster, op, size);
        ASSERT_TRUE(closed);
        const auto chunks = simulate_messages(cluster, op, size, CollectiveAlgorithm::in_switch);
        EXPECT_NEAR(closed->time.value(), chunks.time.value(), 1e-9 * chunks.time.value());
        const auto graph = run(one_collective(cluster, op, bytes, CollectiveAlgorithm::in_switch));
        EXPECT_EQ(graph.in_switch_calls, 1U);
        EXPECT_NEAR(closed->time.value(), 1e-9 * static_cast<double>(graph.makespan_ns()), 1.01e-9);
      }
    }
  }
}

TEST(SwitchCalls, take_the_shorter_way) {
  hardware::Cluster cluster = cluster_with({});
  EXPECT_EQ(
      run(one_collective(cluster, Collective::all_reduce, 64'000'000, CollectiveAlgorithm::automatic)).in_switch_calls,
      1U);
  cluster.topology->in_switch->rate = 0.1_GBps;  // slower than a ring
  EXPECT_EQ(
      run(one_collective(cluster, Collective::all_reduce, 64'000'000, CollectiveAlgorithm::automatic)).in_switch_calls,
      0U);
}

// Four groups with a device below each leaf: with room for one group, the two spines take two of them, but each leaf
// only one.
FlowJob four_groups(const hardware::Cluster& cluster) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  for (std::uint32_t g = 0; g < 4; ++g) { job.groups.push_back({std::to_string(g + 1), {g, g + 4, g + 8, g + 12}}); }
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    NodeTask task;
    task.act = Act::collective;
    task.slot = Slot::comm;
    task.group = rank % 4 + 1;
    task.amount = 64'000'000;
    RankGraph graph;
    graph.nodes = {task};
    graph.child_begin = {0, 0};
    job.rank_graphs.push_back(std::move(graph));
  }
  job.files.assign(16, "");
  return unfolded(cluster, std::move(job));
}

TEST(SwitchCalls, without_room_use_links_and_a_warning_says_so) {
  const auto all = run(four_groups(cluster_with({})));
  EXPECT_EQ(all.in_switch_calls, 4U);
  EXPECT_TRUE(all.warnings.empty());
  const auto limited = run(four_groups(cluster_with({1, Bytes(), BytesPerSecond()})));
  EXPECT_EQ(limited.in_switch_calls, 1U);
  ASSERT_EQ(limited.warnings.size(), 1U);
  EXPECT_EQ(
      limited.warnings.front(),
      "in_switch: switches serve 1 groups at once: 3 of 4 calls that would be faster in switches use links instead");
  EXPECT_GT(limited.makespan_ns(), all.makespan_ns());
}

// estimate's price of a call == the calls of all groups of the kind at once, whether they share links or not: the two
// spines serve two of the four groups across the leaves each, so that two calls share each link between leaf and spine.
TEST(SwitchCallsLaw, price_in_closed_form_equals_the_calls_of_all_groups_at_once) {
  const hardware::Cluster cluster = cluster_with({});
  const network::Fabric fabric(cluster);
  const Bytes bytes(64e6);
  network::Group everyone;
  everyone.extents.push_back({0, 4});
  everyone.extents.push_back({1, 4});
  const network::Price whole = fabric.price(Collective::all_reduce, bytes, everyone);
  EXPECT_EQ(whole.algorithm, CollectiveAlgorithm::in_switch);
  EXPECT_DOUBLE_EQ(whole.time.value(), switch_time(cluster, Collective::all_reduce, bytes)->time.value());
  network::Group across;
  across.extents.push_back({1, 4});
  const network::Price shared = fabric.price(Collective::all_reduce, bytes, across);
  EXPECT_EQ(shared.algorithm, CollectiveAlgorithm::in_switch);
  EXPECT_GT(shared.time, whole.time * 1.5);
  const auto simulated = run(four_groups(cluster));
  EXPECT_NEAR(shared.time.value(), 1e-9 * static_cast<double>(simulated.makespan_ns()), 1e-6 * shared.time.value());
  network::PriceCache cache(fabric);
  EXPECT_EQ(cache.time(Collective::all_reduce, bytes, across), shared.time);
  const network::CallLoads& loads = cache.loads(Collective::all_reduce, bytes, across);
  EXPECT_EQ(loads.time, shared.time);
  ASSERT_EQ(loads.ports.size(), 1U);
  EXPECT_EQ(loads.ports.begin()->dimension, 0);  // the cable of the device
  EXPECT_LT(loads.ports.begin()->load, shared.time);
}

// As in the simulation of the same groups, where three of four calls use links: the slowest group decides.
TEST(SwitchCalls, price_in_closed_form_is_that_of_links_where_a_group_finds_no_room) {
  const hardware::Cluster cluster = cluster_with({1, Bytes(), BytesPerSecond()});
  hardware::Cluster without = cluster;
  without.topology->in_switch.reset();
  network::Group across;
  across.extents.push_back({1, 4});
  const network::Fabric fabric(cluster), links(without);
  for (const Collective op : kOperations) {
    EXPECT_EQ(fabric.price(op, Bytes(64e6), across).time, links.price(op, Bytes(64e6), across).time);
  }
  network::Group inside;
  inside.extents.push_back({0, 4});  // a leaf has one such group
  EXPECT_LT(fabric.price(Collective::all_reduce, Bytes(64e6), inside).time,
            links.price(Collective::all_reduce, Bytes(64e6), inside).time);
  inside.regular = false;
  EXPECT_EQ(fabric.price(Collective::all_reduce, Bytes(64e6), inside).time,
            links.price(Collective::all_reduce, Bytes(64e6), inside).time);
}

TEST(SwitchCalls, over_the_buffer_use_links) {
  const auto simulation = run(one_collective(cluster_with({0, 100_KiB, BytesPerSecond()}), Collective::all_reduce,
                                             64'000'000, CollectiveAlgorithm::automatic));
  EXPECT_EQ(simulation.in_switch_calls, 0U);
  ASSERT_EQ(simulation.warnings.size(), 1U);
}

}  // namespace
}  // namespace orrery::simulate::test::switch_calls_test
