// Links that change while a job runs: hand-derived times, and laws.
#include "orrery/simulate/link_changes.hpp"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "orrery/hardware/topology.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/flow_job.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/one_collective.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::link_changes_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

// Two devices on switch `left`, two on `right`, 1 GB/s, no latency.
hardware::Cluster two_switches() {
  hardware::TopologySpec spec;
  spec.kind = hardware::TopologyKind::list;
  spec.link = network::test::plain_link();
  spec.link.latency = Seconds();
  spec.link.efficiency = 1;
  spec.bandwidth = 1_GBps;
  spec.devices = {"a0", "a1", "b0", "b1"};
  spec.switches = {"left", "right"};
  spec.links = {{"a0", "left"}, {"a1", "left"}, {"b0", "right"}, {"b1", "right"}, {"left", "right"}};
  hardware::Cluster cluster;
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  for (auto& dimension : cluster.dimensions) { dimension.most = dimension.size; }
  cluster.devices = hardware::device_count(spec);
  cluster.topology = std::move(spec);
  return cluster;
}

// Rank 0 sends 1 GB to rank 2.
FlowJob one_message(const hardware::Cluster& cluster) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  return unfolded(
      cluster,
      with_graphs(std::move(job),
                  {{send(1, 2, 1'000'000'000)}, {compute(1, 1)}, {receive(1, 0, 1'000'000'000)}, {compute(1, 1)}}));
}

double finish(FlowJob job, const std::string& changes) {
  const auto read = read_link_changes(changes, "changes.txt");
  if (!read) { throw std::runtime_error(read.error().text()); }
  if (auto done = change_links(job, *read); !done) { throw std::runtime_error(done.error().text()); }
  const auto simulation = simulate_flows(job);
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  return 1e-9 * static_cast<double>(simulation->makespan_ns());
}

std::string error_of(const std::string& changes) {
  try {
    finish(one_message(two_switches()), changes);
  } catch (const std::runtime_error& error) { return error.what(); }
  return {};
}

// 1 s alone. Half of the bandwidth from 0.5 s: 1.5 s. Nothing from 0.25 to 0.75 s: 1.5 s.
TEST(LinkChanges, slow_down_and_stop_a_message) {
  const FlowJob job = one_message(two_switches());
  EXPECT_NEAR(finish(job, ""), 1.0, 1e-8);
  EXPECT_NEAR(finish(job, "change left right 500ms 500MB/s"), 1.5, 1e-8);
  EXPECT_NEAR(finish(job, "change left right 250ms 0\nchange left right 750ms 1GB/s"), 1.5, 1e-8);
  EXPECT_NEAR(finish(job, "change a0 left 0 250MB/s # from the start\n"), 4.0, 1e-8);
  EXPECT_NEAR(finish(job, "cable right left 0s 500MB/s"), 2.0, 1e-8);  // both ways
}

TEST(LinkChangesLaw, of_other_links_and_later_times_change_nothing) {
  const FlowJob job = one_message(two_switches());
  EXPECT_NEAR(finish(job, "change right left 0 0"), 1.0, 1e-8);
  EXPECT_NEAR(finish(job, "cable a1 left 0 0"), 1.0, 1e-8);
  EXPECT_NEAR(finish(job, "cable left right 2s 0"), 1.0, 1e-8);
}

// A collective is one call: a link at half of its bandwidth from the start doubles it where the link is its busiest.
TEST(LinkChangesLaw, less_bandwidth_is_never_earlier) {
  const FlowJob job = one_collective(two_switches(), Collective::all_reduce, 100'000'000, CollectiveAlgorithm::ring);
  double before = finish(job, "");
  for (const char* rate : {"1GB/s", "900MB/s", "700MB/s", "500MB/s", "100MB/s"}) {
    const double now = finish(job, std::string("cable left right 0 ") + rate);
    EXPECT_GE(now, before - 1e-9);
    before = now;
  }
}

// Ports of devices on a cluster without a topology.
TEST(LinkChanges, name_devices_and_dimensions_without_a_topology) {
  hardware::Cluster cluster = network::test::plain_cluster({4});
  cluster.dimensions.front().name = "net";
  const FlowJob job = one_collective(cluster, Collective::all_reduce, 100'000'000, CollectiveAlgorithm::ring);
  const double alone = finish(job, "");
  EXPECT_GT(finish(job, "change d3 net 0 100MB/s"), alone);
  EXPECT_NEAR(finish(job, "change net d3 1h 0"), alone, 1e-9);
}

TEST(LinkChanges, mistakes_have_their_line) {
  EXPECT_EQ(error_of("cable left rihgt 0 0"),
            "changes.txt:1: \"rihgt\" is not a node of the topology; did you mean right?");
  EXPECT_EQ(error_of("change a0 b0 0 0"), "changes.txt:1: no cable joins a0 and b0");
  EXPECT_EQ(error_of("\nchange left right 0 2GB/s"),
            "changes.txt:2: left to right: 2.00 GB/s is more than the 1.00 GB/s of the cluster file");
  EXPECT_EQ(error_of("link left right 0 0"), "changes.txt:1: \"link\" is not a kind of line; valid: change, cable");
  EXPECT_NE(error_of("change left right 5 0").find("has no unit"), std::string::npos);
  EXPECT_NE(error_of("change left right 500ms 0").find("fails and does not come back"), std::string::npos);
}

}  // namespace
}  // namespace orrery::simulate::test::link_changes_test
