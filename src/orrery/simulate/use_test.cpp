// Roofline and energy of small jobs, by hand.
#include <stdexcept>

#include <gtest/gtest.h>

#include "orrery/hardware/topology.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/fold.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::use_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

// 100 TFLOP/s and 1 TB/s; 400 W, of them 100 W idle; a switch with 1 GB/s to each of two devices.
hardware::Cluster machine() {
  hardware::Cluster cluster = network::test::plain_cluster({2});
  cluster.accelerator.matrix_peak["bf16"] = 100_TFLOPps;
  cluster.accelerator.memory_bandwidth = 1000_GBps;
  cluster.accelerator.tdp_watts = 400;
  cluster.accelerator.idle_watts = 100;
  cluster.node_power_watts = 1000;
  cluster.dimensions.front().link.picojoules_per_bit = 10;
  return cluster;
}

NodeRecord kernel(std::uint64_t id, std::uint64_t microseconds, std::int64_t operations, std::int64_t bytes) {
  NodeRecord made = compute(id, microseconds);
  made.attributes = {number(keys::num_ops, operations), number(keys::tensor_size, bytes)};
  return made;
}

results::Simulation run(const hardware::Cluster& cluster, const std::vector<std::vector<NodeRecord>>& nodes) {
  SimulationJob job = machine_on(cluster);
  job.kernel_rates = kernel_rates(cluster);
  job.backend = Backend::flow;
  job.roofline = job.energy = true;
  auto simulation = simulate_flows(unfolded(cluster, with_graphs(std::move(job), nodes)));
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  return *simulation;
}

// 1 GFLOP and 1 MB take 10 us and 1 us at the peaks: bound by compute. 1 GFLOP and 20 MB: 20 us, bound by memory.
TEST(Roofline, adds_operations_and_bytes_of_kernels) {
  const auto simulation = run(
      machine(), {{kernel(1, 40, 1'000'000'000, 1'000'000), kernel(2, 50, 1'000'000'000, 20'000'000), compute(3, 10)},
                  {compute(1, 7)}});
  ASSERT_TRUE(simulation.roofline);
  EXPECT_DOUBLE_EQ(simulation.roofline->ranks[0].peak_flops, 100e12);
  EXPECT_DOUBLE_EQ(simulation.roofline->ranks[0].memory_Bps, 1e12);
  const results::RooflineRank expected{2e9,
                                       21e6,
                                       2,
                                       90'000'000,
                                       50'000'000,
                                       1,
                                       10'000'000,
                                       100'000'000,
                                       simulation.roofline->ranks[0].peak_flops,
                                       simulation.roofline->ranks[0].memory_Bps};
  EXPECT_EQ(simulation.roofline->ranks[0], expected);
  EXPECT_EQ(simulation.roofline->ranks[1].kernels, 0U);
  EXPECT_EQ(simulation.roofline->ranks[1].finish_ps, 7'000'000U);
}

double joules(const results::Simulation& simulation, std::size_t part) {
  return simulation.energy->parts.at(part).joules;
}

// Two devices for 1 s, one of them with kernels: 200 J idle, 300 J of kernels; the node has 1000 W, 200 W more than its
// accelerators.
TEST(Energy, of_accelerators_and_nodes) {
  const auto simulation = run(machine(), {{compute(1, 1'000'000)}, {compute(1, 1)}});
  ASSERT_EQ(simulation.energy->parts.size(), 4U);
  EXPECT_NEAR(joules(simulation, 0), 200, 1e-9);
  EXPECT_NEAR(joules(simulation, 1), 300 * 1.000001, 1e-9);
  EXPECT_NEAR(joules(simulation, 2), 0, 1e-15);
  EXPECT_NEAR(joules(simulation, 3), 200, 1e-9);
}

// 1 MB goes up one cable and down the other: 16 Mbit, 10 pJ each; the link carries payload / efficiency.
TEST(Energy, of_bits_on_cables) {
  const auto cluster = machine();
  const auto simulation = run(cluster, {{send(1, 1, 1'000'000)}, {receive(1, 0, 1'000'000)}});
  EXPECT_NEAR(joules(simulation, 2) * cluster.dimensions.front().link.efficiency, 16e6 * 10e-12, 1e-10);
}

// Two leaves of two devices below one spine; figures of each level.
hardware::Cluster two_levels(std::vector<double> picojoules) {
  hardware::TopologySpec spec;
  spec.kind = hardware::TopologyKind::switch_tree;
  spec.down = {2, 2};
  spec.bandwidth = 1_GBps;
  spec.link = machine().dimensions.front().link;
  spec.picojoules_per_bit = std::move(picojoules);
  hardware::Cluster cluster = machine();
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  cluster.devices = 4;
  cluster.topology = std::move(spec);
  return cluster;
}

// 1 MB across the spine crosses 2 cables of leaves at 3 pJ and 2 of the spine at 30; inside a leaf 2 at 3.
TEST(EnergyLaw, of_links_is_by_the_level_of_each_cable_on_the_route) {
  const auto cluster = two_levels({3, 30});
  const double bits = 8e6 / cluster.dimensions.front().link.efficiency;
  const auto across =
      run(cluster, {{send(1, 2, 1'000'000)}, {compute(1, 1)}, {receive(1, 0, 1'000'000)}, {compute(1, 1)}});
  EXPECT_EQ(across.energy->parts[2].name, "cables of " + cluster.dimensions[0].name);
  EXPECT_NEAR(joules(across, 2), 2 * bits * 3e-12, 1e-10);
  EXPECT_NEAR(joules(across, 3), 2 * bits * 30e-12, 1e-9);
  const auto inside =
      run(cluster, {{send(1, 1, 1'000'000)}, {receive(1, 0, 1'000'000)}, {compute(1, 1)}, {compute(1, 1)}});
  EXPECT_NEAR(joules(inside, 2), 2 * bits * 3e-12, 1e-10);
  EXPECT_EQ(joules(inside, 3), 0);
}

// Without figures of levels all cables have that of the link class; on one switch as without a topology.
TEST(EnergyLaw, of_one_switch_is_that_of_a_dimension) {
  hardware::TopologySpec spec = *two_levels({}).topology;
  spec.down = {1, 2};
  hardware::Cluster one = machine();
  one.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  one.topology = spec;
  const auto message = [](const hardware::Cluster& on) {
    return run(on, {{send(1, 1, 1'000'000)}, {receive(1, 0, 1'000'000)}});
  };
  EXPECT_NEAR(joules(message(one), 2), 2 * joules(message(machine()), 2), 1e-10);  // 4 cables through 3 switches
  const auto across =
      run(two_levels({}), {{send(1, 2, 1'000'000)}, {compute(1, 1)}, {receive(1, 0, 1'000'000)}, {compute(1, 1)}});
  EXPECT_NEAR(joules(across, 2) + joules(across, 3), 2 * joules(message(machine()), 2), 1e-10);
  const auto inside =
      run(two_levels({}), {{send(1, 1, 1'000'000)}, {receive(1, 0, 1'000'000)}, {compute(1, 1)}, {compute(1, 1)}});
  EXPECT_NEAR(joules(inside, 2), joules(message(machine()), 2), 1e-10);
}

// Bits do not depend on what else runs; a machine without figures says what is missing.
TEST(EnergyLaw, of_links_adds_up_over_calls) {
  const auto one = run(machine(), {{send(1, 1, 1'000'000)}, {receive(1, 0, 1'000'000)}});
  const auto two = run(machine(), {{send(1, 1, 1'000'000), send(2, 1, 1'000'000)},
                                   {receive(1, 0, 1'000'000), receive(2, 0, 1'000'000)}});
  EXPECT_NEAR(joules(two, 2), 2 * joules(one, 2), 1e-9 * joules(two, 2));
  hardware::Cluster bare = machine();
  bare.accelerator.tdp_watts = 0;
  const auto unknown = run(bare, {{compute(1, 1)}, {compute(1, 1)}});
  EXPECT_EQ(unknown.energy->missing.size(), 3U);
}

// ---- nodes of two kinds --------------------------------------------------------------------------------------------

// Two nodes of one device: the second one has half of the rates, 200 W, of them 50 W idle.
hardware::Cluster two_kinds() {
  hardware::Cluster cluster = machine();
  cluster.dimensions = network::test::plain_cluster({1, 2}).dimensions;
  cluster.nodes = {{1, cluster.accelerator}, {1, cluster.accelerator}};
  hardware::Accelerator& second = cluster.nodes[1].accelerator;
  second.name = "second";
  second.matrix_peak["bf16"] = 50_TFLOPps;
  second.memory_bandwidth = 500_GBps;
  second.tdp_watts = 200;
  second.idle_watts = 50;
  return cluster;
}

NodeRecord timeless_kernel(std::uint64_t id, std::int64_t operations, std::int64_t bytes) {
  NodeRecord made = node(id, NodeType::comp);
  made.attributes = {number(keys::num_ops, operations), number(keys::tensor_size, bytes)};
  return made;
}

// 1 GFLOP on 1 MB: bound by arithmetic on both, so each runs at all of its own peak: 10 us, and 20 us. 20 MB: 20 and
// 40 us, at all of the memory's.
TEST(Roofline, of_each_rank_is_that_of_its_node) {
  const std::vector<NodeRecord> nodes = {timeless_kernel(1, 1'000'000'000, 1'000'000)};
  const auto simulation = run(two_kinds(), {nodes, nodes});
  for (const auto& rank : simulation.roofline->ranks) {
    EXPECT_NEAR(rank.operations, rank.peak_flops * 1e-12 * static_cast<double>(rank.kernel_ps), 1.0);
    EXPECT_EQ(rank.memory_bound_ps, 0U);
  }
  EXPECT_EQ(simulation.roofline->ranks[1].kernel_ps, 2 * simulation.roofline->ranks[0].kernel_ps);
  const std::vector<NodeRecord> moving = {timeless_kernel(1, 1'000'000'000, 20'000'000)};
  const auto bound = run(two_kinds(), {moving, moving});
  for (const auto& rank : bound.roofline->ranks) {
    EXPECT_NEAR(rank.bytes, rank.memory_Bps * 1e-12 * static_cast<double>(rank.kernel_ps), 1.0);
    EXPECT_EQ(rank.memory_bound_ps, rank.kernel_ps);
  }
}

// Each 1 s of kernels: 100 + 300 J, and 50 + 150 J. Nodes of 1000 W: 600 and 800 W besides.
TEST(Energy, of_each_device_is_that_of_its_node) {
  const auto simulation = run(two_kinds(), {{compute(1, 1'000'000)}, {compute(1, 1'000'000)}});
  ASSERT_EQ(simulation.energy->parts.size(), 6U);
  EXPECT_NEAR(joules(simulation, 0), 100, 1e-9);
  EXPECT_NEAR(joules(simulation, 1), 300, 1e-9);
  EXPECT_NEAR(joules(simulation, 2), 50, 1e-9);
  EXPECT_NEAR(joules(simulation, 3), 150, 1e-9);
  EXPECT_EQ(simulation.energy->parts[3].name, "second, kernels");
  EXPECT_NEAR(joules(simulation, 5), 1400, 1e-9);
}

// Ranks with equal recorded times fold to one class of each kind of nodes, with the figures of every rank.
TEST(Roofline, folded_ranks_have_those_of_their_nodes) {
  hardware::Cluster cluster = two_kinds();
  cluster.dimensions = network::test::plain_cluster({1, 4}).dimensions;
  cluster.devices = 4;
  cluster.nodes[0].count = cluster.nodes[1].count = 2;
  SimulationJob job = machine_on(cluster);
  job.kernel_rates = kernel_rates(cluster);
  job.backend = Backend::flow;
  job.roofline = job.energy = true;
  const std::vector<NodeRecord> nodes = {kernel(1, 40, 1'000'000'000, 15'000'000)};
  const FlowJob flow = unfolded(cluster, with_graphs(std::move(job), {nodes, nodes, nodes, nodes}));
  const FoldedJob folded = fold(flow);
  EXPECT_EQ(folded.job.job.rank_graphs.size(), 2U);
  const auto whole = simulate_flows(flow), few = simulate_flows(folded.job);
  ASSERT_TRUE(whole && few);
  EXPECT_EQ(whole->roofline->ranks, few->roofline->ranks);
  EXPECT_EQ(few->roofline->ranks[3].peak_flops, 50e12);
  EXPECT_NEAR(whole->energy->joules(), few->energy->joules(), 1e-12);
}

}  // namespace
}  // namespace orrery::simulate::test::use_test
