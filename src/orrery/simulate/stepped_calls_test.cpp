// Collectives of graphs message by message: against the same collective alone (message_flows.hpp), and by hand.
#include "orrery/simulate/stepped_calls.hpp"

#include <array>

#include <gtest/gtest.h>

#include "orrery/hardware/topology.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/flow_machine.hpp"
#include "orrery/simulate/message_flows.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/one_collective.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::stepped_calls_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

// Four leaves of four devices at 1 GB/s below `spines` switches; with `domain` > 1, domains of so many at 9 GB/s.
hardware::Cluster tree(std::int64_t domain, std::int64_t spines = 4) {
  hardware::TopologySpec spec;
  spec.link = network::test::plain_link();
  spec.bandwidth = 1_GBps;
  spec.down = {4, 4};
  spec.up = {1, spines};
  if (domain > 1) { spec.scale_up = hardware::ScaleUpDomain{domain, 9_GBps, spec.link}; }
  hardware::Cluster cluster;
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  for (auto& dimension : cluster.dimensions) { dimension.most = dimension.size; }
  cluster.devices = hardware::device_count(spec);
  cluster.topology = std::move(spec);
  return cluster;
}

results::Simulation run(const FlowJob& job) {
  auto simulation = simulate_flows(job);
  EXPECT_TRUE(simulation);
  return std::move(*simulation);
}

results::Simulation run_by_message(FlowJob job) {
  job.job.by_message = true;
  return run(job);
}

// Every rank runs one all-reduce in the group that lists it; ranks of none do nothing.
FlowJob groups_of(const hardware::Cluster& cluster, const std::vector<std::vector<std::uint32_t>>& groups,
                  std::uint64_t bytes) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  std::vector<std::uint32_t> group_of(static_cast<std::size_t>(cluster.devices), 0);
  for (const auto& ranks : groups) {
    job.groups.push_back({std::to_string(job.groups.size() + 1), ranks});
    for (const std::uint32_t rank : ranks) { group_of[rank] = static_cast<std::uint32_t>(job.groups.size()); }
  }
  for (const std::uint32_t group : group_of) {
    NodeTask task;
    task.act = group == 0 ? Act::no_op : Act::collective;
    task.slot = Slot::comm;
    task.group = group;
    task.amount = bytes;
    RankGraph graph;
    graph.nodes = {task};
    graph.child_begin = {0, 0};
    job.rank_graphs.push_back(std::move(graph));
  }
  job.files.assign(group_of.size(), "");
  return unfolded(cluster, std::move(job));
}

double seconds_of(const results::Simulation& simulation) {
  return 1e-9 * static_cast<double>(simulation.makespan_ns());
}

// Both have the same messages, routes and rates, one in whole picoseconds, one in floating point.
TEST(SteppedCallsLaw, one_collective_of_a_graph_takes_the_time_of_the_collective_alone) {
  for (const hardware::Cluster& cluster : {tree(1), tree(4), tree(1, 1), tree(2, 2)}) {
    for (const Collective op : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                Collective::all_to_all, Collective::broadcast}) {
      for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{16'000'000}}) {
        for (const auto algorithm : {network::usual_algorithm(op), CollectiveAlgorithm::hierarchical}) {
          const auto alone = simulate_messages(cluster, op, Bytes(static_cast<double>(bytes)), algorithm);
          const auto graph = run_by_message(one_collective(cluster, op, bytes, algorithm));
          EXPECT_NEAR(seconds_of(graph), alone.time.value(), 2e-9 + 1e-8 * alone.time.value()) << static_cast<int>(op);
          EXPECT_EQ(graph.messages, alone.messages);
        }
      }
    }
  }
}

// By itself, a call has the schedule of the closed form: on a torus along each axis in chunks, inside a scale-up domain
// in its switch.
TEST(SteppedCallsLaw, a_call_takes_the_time_of_the_schedule_that_the_closed_form_chooses) {
  hardware::TopologySpec spec;
  spec.kind = hardware::TopologyKind::torus;
  spec.link = network::test::plain_link();
  spec.bandwidth = 1_GBps;
  spec.sizes = {4, 4, 3};
  hardware::Cluster torus;
  torus.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  for (auto& dimension : torus.dimensions) { dimension.most = dimension.size; }
  torus.devices = hardware::device_count(spec);
  torus.topology = std::move(spec);
  network::Group all;
  for (int d = 0; d < 3; ++d) { all.extents.push_back({d, torus.dimensions[static_cast<std::size_t>(d)].size}); }
  bool has_chunks = false;
  for (const Collective op : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_to_all}) {
    for (const double bytes : {4096.0, 16e6}) {
      const network::Price price = network::Fabric(torus).price(op, Bytes(bytes), all);
      has_chunks = has_chunks || price.chunks > 1;
      const auto graph =
          run_by_message(one_collective(torus, op, static_cast<std::uint64_t>(bytes), CollectiveAlgorithm::automatic));
      EXPECT_NEAR(seconds_of(graph), price.time.value(), 2e-9 + 1e-8 * price.time.value()) << static_cast<int>(op);
    }
  }
  EXPECT_TRUE(has_chunks);

  const hardware::Cluster domains = tree(4);
  network::Group domain;
  domain.extents.push_back({0, 4});
  const network::Price price = network::Fabric(domains).price(Collective::all_reduce, Bytes(4096), domain);
  EXPECT_EQ(price.algorithm, CollectiveAlgorithm::in_switch);
  EXPECT_NEAR(seconds_of(run_by_message(groups_of(domains, {{4, 5, 6, 7}}, 4096))), price.time.value(), 2e-9);
}

// Pairs 0-4 and 1-5 share the one cable between the first leaf and the spine, 8-9 are below one leaf. A pair sends half
// of the buffer twice, each way.
TEST(SteppedCalls, groups_share_the_links_that_they_use) {
  const std::uint64_t bytes = 1'000'000'000;
  const hardware::Cluster cluster = tree(1, 1);
  const double alone = seconds_of(run_by_message(groups_of(cluster, {{0, 4}}, bytes)));
  EXPECT_NEAR(alone, 1.0, 1e-3);
  EXPECT_NEAR(seconds_of(run_by_message(groups_of(cluster, {{0, 4}, {1, 5}}, bytes))), 2.0, 1e-3);
  EXPECT_NEAR(seconds_of(run_by_message(groups_of(cluster, {{0, 4}, {8, 9}}, bytes))), alone, 1e-9);
  EXPECT_NEAR(seconds_of(run_by_message(groups_of(cluster, {{0, 4, 8}, {1, 5, 9}, {2, 6, 10}}, bytes))), 4.0, 4e-3);
}

// A ring over 0, 1, 4 crosses the cable once each way, one over 0, 4, 1, 5 as well when its members are in the order of
// their devices: the whole call has the same load there.
TEST(SteppedCalls, a_group_of_any_ranks_takes_as_long_as_its_ring) {
  const hardware::Cluster cluster = tree(1, 1);
  const auto time_of = [&](const std::vector<std::uint32_t>& ranks) {
    FlowJob job = groups_of(cluster, {ranks}, 600'000'000);
    job.algorithm = CollectiveAlgorithm::flat_ring;
    return seconds_of(run_by_message(std::move(job)));
  };
  EXPECT_NEAR(time_of({0, 1, 4}), 0.8, 1e-3);
  EXPECT_NEAR(time_of({4, 0, 5, 1}), 0.9, 1e-3);
}

// The second spine fails after half of the time: what was on it shares the other one.
TEST(SteppedCalls, messages_avoid_a_link_that_has_failed) {
  const hardware::Cluster cluster = tree(1, 2);
  FlowJob job = groups_of(cluster, {{0, 4}, {1, 5}}, 1'000'000'000);
  job.job.by_message = true;
  const double before = seconds_of(run(job));
  const hardware::Topology topology = hardware::build(*cluster.topology);
  const auto fail = [&](std::uint32_t node) {
    for (std::uint32_t link = 0; link < topology.links.size(); ++link) {
      if (topology.links[link].from != node && topology.links[link].to != node) { continue; }
      FlowJob::PortChange change;
      change.link = link;
      change.time = Seconds(before / 2);
      change.part = 0;
      job.changes.push_back(change);
    }
  };
  fail(static_cast<std::uint32_t>(topology.nodes.size() - 1));
  const double after = seconds_of(run(job));
  EXPECT_GE(after, before);
  EXPECT_LE(after, 2.0 + 1e-3);
}

TEST(SteppedCallsLaw, more_bandwidth_on_every_link_is_never_later_for_a_ring) {
  hardware::Cluster faster = tree(1, 1);
  const auto slow = seconds_of(
      run_by_message(one_collective(faster, Collective::all_reduce, 1 << 24, CollectiveAlgorithm::automatic)));
  faster.topology->bandwidth = 2_GBps;
  for (auto& dimension : faster.dimensions) { dimension.bandwidth = 2_GBps; }
  const auto fast = seconds_of(
      run_by_message(one_collective(faster, Collective::all_reduce, 1 << 24, CollectiveAlgorithm::automatic)));
  EXPECT_LT(fast, slow);
}

}  // namespace
}  // namespace orrery::simulate::test::stepped_calls_test
