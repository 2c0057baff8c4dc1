// Jobs on clusters whose collectives and messages are flows.
#include "orrery/simulate/flow.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "orrery/core/test_effort.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/one_collective.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::flow_test {
namespace {

using network::test::kPricedCollectives;
using network::test::kScheduleAlgorithms;
using network::test::plain_cluster;

std::uint64_t picoseconds(Seconds time) { return static_cast<std::uint64_t>(std::llround(time.value() * 1e12)); }

Result<FlowJob> job_of(const hardware::Cluster& cluster, const std::vector<std::vector<NodeRecord>>& nodes,
                       std::vector<Group> groups = {}) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  job.groups = std::move(groups);
  job.tables = job.spans = true;
  job.files.assign(nodes.size(), "");
  const GroupIndex index(job.groups);
  for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) {
    graph::GraphBuilder builder;
    for (const NodeRecord& node : nodes[rank]) { builder.add(node); }
    if (nodes[rank].empty()) { builder.add(compute(1, 0)); }
    auto graph = builder.finish();
    if (!graph) { return tl::make_unexpected(graph.error()); }
    auto compiled = compile(*graph, rank, "", compile_context(job, index));
    if (!compiled) { return tl::make_unexpected(compiled.error()); }
    job.rank_graphs.push_back(std::move(*compiled));
  }
  return unfolded(cluster, std::move(job));
}

results::Simulation run_on(const hardware::Cluster& cluster, const std::vector<std::vector<NodeRecord>>& nodes,
                           std::vector<Group> groups = {}) {
  auto job = job_of(cluster, nodes, std::move(groups));
  if (!job) { throw std::runtime_error(job.error().text()); }
  auto simulation = simulate_flows(*job);
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  return *simulation;
}

network::Group everyone(const hardware::Cluster& cluster) {
  network::Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    if (cluster.dimensions[d].size > 1) { group.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size}); }
  }
  return group;
}

// ---- one collective, alone -----------------------------------------------------------------------------------------

// Every operation, algorithm and size, on every cluster of the catalogue with 1 to 4 nodes.
TEST(Flow, a_collective_alone_takes_the_time_of_the_closed_form) {
  const hardware::Catalogue catalogue(ORRERY_SOURCE_DATA_DIR);
  std::size_t compared = 0;
  const auto clusters = catalogue.clusters();
  ASSERT_TRUE(clusters);
  for (const auto& entry : *clusters) {
    const auto one = catalogue.cluster(entry.name, 0);
    ASSERT_TRUE(one) << one.error().text();
    for (const std::int64_t nodes : {1, 2, 4}) {
      if (orrery::test::kSanitizers && nodes == 4) { continue; }
      const auto cluster = catalogue.cluster(entry.name, one->dimensions.front().size * nodes);
      if (!cluster || cluster->devices < 2 || cluster->devices > 128) { continue; }
      const network::Fabric fabric(*cluster);
      const network::Group group = everyone(*cluster);
      for (const Collective collective : kPricedCollectives) {
        for (auto algorithm : {CollectiveAlgorithm::automatic, CollectiveAlgorithm::ring, CollectiveAlgorithm::tree,
                               CollectiveAlgorithm::direct, CollectiveAlgorithm::in_switch}) {
          for (const std::uint64_t bytes : {1ULL, 1000ULL, 65'536ULL, 33'554'432ULL, 1'073'741'824ULL}) {
            const auto price = fabric.price(collective, Bytes(static_cast<double>(bytes)), group, algorithm);
            if (!std::isfinite(price.time.value())) { continue; }
            FlowJob job = one_collective(*cluster, collective, bytes, algorithm);
            job.job.tables = true;
            const auto simulation = simulate_flows(job);
            ASSERT_TRUE(simulation) << simulation.error().text();
            for (const auto& rank : simulation->tables->ranks) {
              ASSERT_EQ(rank.finish_ps, picoseconds(price.time)) << entry.name << ' ' << nodes << ' ' << bytes;
            }
            EXPECT_TRUE(simulation->contention.empty());
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, orrery::test::cases(2000U));
}

// Groups of any shape: part of a node, one device of every node, uneven ones.
RC_GTEST_PROP(FlowLaw, a_group_alone_takes_the_time_of_the_closed_form, ()) {
  const auto sizes =
      *rc::gen::elementOf(std::vector<std::vector<std::int64_t>>{{4}, {2, 3}, {4, 2}, {2, 2, 3}, {8, 4}});
  const hardware::Cluster cluster = plain_cluster(sizes);
  const auto devices = static_cast<std::uint32_t>(cluster.devices);
  const auto stride = *rc::gen::inRange<std::uint32_t>(1, devices);
  const auto members = *rc::gen::inRange<std::uint32_t>(2, devices + 1);
  RC_PRE((members - 1) * stride < devices);
  Group group{"g", {}};
  for (std::uint32_t i = 0; i < members; ++i) { group.ranks.push_back(i * stride); }
  const auto bytes = *rc::gen::inRange<std::int64_t>(1, 1 << 24);
  std::vector<std::vector<NodeRecord>> nodes(devices);
  for (const std::uint32_t rank : group.ranks) { nodes[rank] = {all_reduce(1, bytes, {}, "g")}; }
  const network::Group shape = shape_of(parallel::rank_order(cluster), group.ranks);
  RC_ASSERT(shape.size() == static_cast<std::int64_t>(members));
  const auto price = network::Fabric(cluster).price(Collective::all_reduce, Bytes(static_cast<double>(bytes)), shape);
  const auto simulation = run_on(cluster, nodes, {group});
  for (std::uint32_t rank = 0; rank < devices; ++rank) {
    RC_ASSERT(simulation.tables->ranks[rank].finish_ps == (nodes[rank].empty() ? 0U : picoseconds(price.time)));
  }
}

// ---- several at once -----------------------------------------------------------------------------------------------

// Two calls of the same devices at once take as long as their ports need for both.
TEST(Flow, collectives_of_the_same_devices_share_their_ports) {
  const hardware::Cluster cluster = plain_cluster({4});
  constexpr std::int64_t kBytes = 1 << 30;
  const auto alone = run_on(cluster, std::vector<std::vector<NodeRecord>>(4, {all_reduce(1, kBytes)}));
  const auto both =
      run_on(cluster, std::vector<std::vector<NodeRecord>>(4, {all_reduce(1, kBytes), all_reduce(2, kBytes)}));
  const auto one = static_cast<double>(alone.tables->ranks.front().finish_ps);
  const auto two = static_cast<double>(both.tables->ranks.front().finish_ps);
  EXPECT_NEAR(two / static_cast<double>(both.tables->links.front().busy_ps), 1.0, 1e-6);
  EXPECT_GT(two / one, 1.99);  // bytes dominate
  ASSERT_EQ(both.contention.size(), 1U);
  EXPECT_EQ(both.contention.front().kind, both.contention.front().other);
  EXPECT_EQ(both.contention.front().dimension, "d");
  EXPECT_NEAR(static_cast<double>(both.contention.front().lost_ps) / (2 * (two - one)), 1.0, 1e-6);
}

TEST(Flow, collectives_on_other_dimensions_do_not_meet) {
  const hardware::Cluster cluster = plain_cluster({2, 2});
  const std::vector<Group> groups = {{"a", {0, 1}}, {"b", {2, 3}}, {"c", {0, 2}}, {"d", {1, 3}}};
  const auto job = [&](bool inner, bool outer) {
    std::vector<std::vector<NodeRecord>> nodes(4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      if (inner) { nodes[rank].push_back(all_reduce(1, 1 << 26, {}, rank < 2 ? "a" : "b")); }
      if (outer) { nodes[rank].push_back(all_reduce(2, 1 << 26, {}, rank % 2 == 0 ? "c" : "d")); }
    }
    return run_on(cluster, nodes, groups).makespan_ns();
  };
  EXPECT_EQ(job(true, true), std::max(job(true, false), job(false, true)));
}

// The bytes of ports are those of the calls, whether they share ports or not.
TEST(Flow, ports_carry_the_bytes_of_their_calls) {
  const hardware::Cluster cluster = plain_cluster({4});
  constexpr std::int64_t kBytes = 1 << 20;
  const auto simulation =
      run_on(cluster, std::vector<std::vector<NodeRecord>>(4, {collective(1, CollectiveType::reduce_scatter, kBytes),
                                                               collective(2, CollectiveType::all_gather, kBytes / 4)}));
  ASSERT_EQ(simulation.tables->links.size(), 8U);  // in and out of four devices
  for (const auto& link : simulation.tables->links) {
    EXPECT_EQ(link.bytes, 2U * 3 * kBytes / 4);
    EXPECT_LE(link.busy_ps, simulation.tables->ranks.front().finish_ps);
  }
}

TEST(Flow, a_collective_starts_when_its_last_member_has_reached_it) {
  const hardware::Cluster cluster = plain_cluster({2});
  const auto together = run_on(cluster, {{all_reduce(1, 4096)}, {all_reduce(1, 4096)}});
  const auto late = run_on(cluster, {{all_reduce(1, 4096)}, {compute(2, 7), all_reduce(3, 4096, {2})}});
  EXPECT_EQ(late.tables->ranks[0].finish_ps, together.tables->ranks[0].finish_ps + 7'000'000);
  EXPECT_EQ(late.tables->ranks[1].finish_ps, late.tables->ranks[0].finish_ps);
}

// ---- messages ------------------------------------------------------------------------------------------------------

NodeRecord message(std::uint64_t id, bool sends, std::int64_t peer, std::int64_t bytes,
                   std::vector<std::uint64_t> parents = {}) {
  NodeRecord made = node(id, sends ? NodeType::comm_send : NodeType::comm_recv, std::move(parents));
  made.attributes = {number(sends ? keys::comm_dst : keys::comm_src, peer), number(keys::comm_size, bytes),
                     number(keys::comm_tag, 0)};
  return made;
}

TEST(Flow, a_message_takes_latency_and_bytes_of_the_outermost_dimension_that_it_crosses) {
  hardware::Cluster cluster = plain_cluster({2, 2});
  cluster.dimensions[1].bandwidth = BytesPerSecond(0.5e9);
  const auto near = run_on(cluster, {{message(1, true, 1, 1'000'000)}, {message(1, false, 0, 1'000'000)}, {}, {}});
  EXPECT_EQ(near.makespan_ns(), 1'001'000U);  // 1 us + 1 MB at 1 GB/s
  const auto far = run_on(cluster, {{message(1, true, 3, 1'000'000)}, {}, {}, {message(1, false, 0, 1'000'000)}});
  EXPECT_EQ(far.makespan_ns(), 2'001'000U);
}

TEST(Flow, messages_of_a_device_share_its_port) {
  const hardware::Cluster cluster = plain_cluster({4});
  const auto fan = run_on(cluster, {{message(1, true, 1, 1'000'000), message(2, true, 2, 1'000'000)},
                                    {message(1, false, 0, 1'000'000)},
                                    {message(1, false, 0, 1'000'000)},
                                    {}});
  EXPECT_NEAR(static_cast<double>(fan.makespan_ns()), 2'001'000.0, 1100.0);
  // Both directions of a port are independent.
  const auto exchange = run_on(cluster, {{message(1, true, 1, 1'000'000), message(2, false, 1, 1'000'000)},
                                         {message(1, true, 0, 1'000'000), message(2, false, 0, 1'000'000)},
                                         {},
                                         {}});
  EXPECT_EQ(exchange.makespan_ns(), 1'001'000U);
}

// ---- kernels beside collectives ------------------------------------------------------------------------------------

// An all-reduce that takes a fifth of the rate of kernels; alone it takes `alone`, which starts and ends beside them.
TEST(Flow, kernels_lose_rate_while_a_collective_runs_beside_them) {
  const hardware::Cluster cluster = plain_cluster({2});
  NodeRecord slows = all_reduce(1, 1 << 20);
  slows.attributes.push_back(number(keys::slows_kernels, 200'000));
  const auto alone = run_on(cluster, {{slows}, {slows}}).tables->ranks.front().finish_ps;
  const auto finish = [&](std::uint64_t microseconds) {
    const auto simulation = run_on(cluster, std::vector<std::vector<NodeRecord>>(2, {slows, compute(2, microseconds)}));
    return simulation.tables->ranks.front().finish_ps;
  };
  constexpr std::uint64_t kShort = 100, kLong = 5000, kMicrosecond = 1'000'000;
  ASSERT_GT(alone, 2 * kShort * kMicrosecond);
  ASSERT_LT(alone, kLong * kMicrosecond);
  EXPECT_EQ(finish(kShort), alone);
  const double lost = 0.2 * static_cast<double>(alone);
  EXPECT_NEAR(static_cast<double>(finish(kLong)), static_cast<double>(kLong * kMicrosecond) + lost, 2.0);
  // A kernel that the collective outlasts takes 1 / 0.8 of its time: the next one starts then.
  const auto simulation = run_on(
      cluster, std::vector<std::vector<NodeRecord>>(2, {slows, compute(2, kShort), on_host(compute(3, 1, {2}))}));
  std::uint64_t start = 0;
  for (const auto& row : simulation.tables->operators) {
    if (row.rank == 0 && row.node == 3) { start = row.start_ns; }
  }
  EXPECT_EQ(start, kShort * 1000 * 5 / 4);
}

// ---- errors --------------------------------------------------------------------------------------------------------

TEST(Flow, a_collective_that_a_member_never_reaches_is_a_deadlock) {
  const auto job = job_of(plain_cluster({2}), {{all_reduce(1, 64)}, {compute(1, 1)}});
  ASSERT_TRUE(job);
  const auto simulation = simulate_flows(*job);
  ASSERT_FALSE(simulation);
  EXPECT_NE(simulation.error().text().find("rank 1, which never joins"), std::string::npos)
      << simulation.error().text();
}

TEST(Flow, a_message_without_a_receive_is_named) {
  const auto job = job_of(plain_cluster({2}), {{message(1, true, 1, 64)}, {compute(1, 1)}});
  ASSERT_TRUE(job);
  const auto simulation = simulate_flows(*job);
  ASSERT_FALSE(simulation);
  EXPECT_NE(simulation.error().text().find("no matching receive"), std::string::npos) << simulation.error().text();
}

TEST(Flow, a_recorded_duration_goes_before_the_roofline) {
  const hardware::Cluster cluster = plain_cluster({2});
  NodeRecord timed = compute(1, 12);
  timed.attributes = {number(keys::num_ops, 1'000'000'000'000), number(keys::tensor_size, 1)};
  EXPECT_EQ(run_on(cluster, {{timed}, {timed}}).makespan_ns(), 12'000U);
}

}  // namespace
}  // namespace orrery::simulate::test::flow_test
