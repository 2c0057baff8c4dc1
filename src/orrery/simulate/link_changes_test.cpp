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

// ---- links that fail for good --------------------------------------------------------------------------------------

// Switches in a ring with one device each, 1 GB/s, no latency; `chord`: a cable between switches 0 and n / 2.
hardware::Cluster ring_of_switches(std::uint32_t n, bool chord, hardware::Routing routing) {
  hardware::Cluster cluster = two_switches();
  hardware::TopologySpec& spec = *cluster.topology;
  spec.devices.clear(), spec.switches.clear(), spec.links.clear();
  spec.routing = routing;
  for (std::uint32_t i = 0; i < n; ++i) {
    spec.devices.push_back("d" + std::to_string(i));
    spec.switches.push_back("s" + std::to_string(i));
    spec.links.push_back({spec.devices.back(), spec.switches.back()});
    spec.links.push_back({spec.switches.back(), "s" + std::to_string((i + 1) % n)});
  }
  if (chord) { spec.links.push_back({"s0", "s" + std::to_string(n / 2)}); }
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  for (auto& dimension : cluster.dimensions) { dimension.most = dimension.size; }
  cluster.devices = hardware::device_count(spec);
  return cluster;
}

struct Sent {
  std::uint32_t from, to;
  std::uint64_t bytes;
};

FlowJob messages_on(const hardware::Cluster& cluster, const std::vector<Sent>& all) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  std::vector<std::vector<NodeRecord>> graphs(static_cast<std::size_t>(cluster.devices), {compute(1, 1)});
  std::uint64_t id = 1;
  for (const Sent& sent : all) {
    ++id;
    graphs[sent.from].push_back(send(id, sent.to, static_cast<std::int64_t>(sent.bytes)));
    graphs[sent.to].push_back(receive(id, sent.from, static_cast<std::int64_t>(sent.bytes)));
  }
  FlowJob made = unfolded(cluster, with_graphs(std::move(job), graphs));
  made.by_link = true;
  return made;
}

results::Simulation run(FlowJob job, const std::string& changes) {
  const auto read = read_link_changes(changes, "changes.txt");
  if (!read) { throw std::runtime_error(read.error().text()); }
  if (auto done = change_links(job, *read); !done) { throw std::runtime_error(done.error().text()); }
  auto simulation = simulate_flows(job);
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  return std::move(*simulation);
}

double bytes_on(const results::Simulation& simulation, const std::string& from, const std::string& to) {
  double bytes = 0;
  for (const results::LinkUse& use : simulation.link_uses) {
    if (use.from == from && use.to == to) { bytes += 1e-12 * static_cast<double>(use.busy_ps) * use.bandwidth_Bps; }
  }
  return bytes;
}

// Alone, 1 GB from d0 to d1 take 1 s over s0-s1, and as long over s0-s3-s2-s1. From 0.25 s on both messages have 0.75
// GB left and share s3-s2: 1.5 s more.
TEST(LinkChanges, messages_avoid_a_link_that_fails_for_good) {
  const hardware::Cluster cluster = ring_of_switches(4, false, hardware::Routing::shortest);
  const FlowJob one = messages_on(cluster, {{0, 1, 1'000'000'000}});
  EXPECT_NEAR(finish(one, "cable s0 s1 250ms 0"), 1.0, 1e-8);
  const FlowJob two = messages_on(cluster, {{0, 1, 1'000'000'000}, {3, 2, 1'000'000'000}});
  EXPECT_NEAR(finish(two, ""), 1.0, 1e-8);
  const results::Simulation failed = run(two, "change s0 s1 250ms 0");
  EXPECT_NEAR(1e-9 * static_cast<double>(failed.makespan_ns()), 1.75, 1e-8);
  EXPECT_NEAR(bytes_on(failed, "s0", "s1"), 0.25e9, 10);
  EXPECT_NEAR(bytes_on(failed, "s0", "s3"), 0.75e9, 10);
  EXPECT_NEAR(bytes_on(failed, "s3", "s2"), 1.75e9, 10);
}

// A link that comes back is waited for; a message that starts after the failure takes the other way at once.
TEST(LinkChanges, only_links_that_do_not_come_back_are_avoided) {
  const hardware::Cluster cluster = ring_of_switches(4, false, hardware::Routing::shortest);
  const FlowJob job = messages_on(cluster, {{0, 1, 1'000'000'000}});
  EXPECT_NEAR(finish(job, "cable s0 s1 250ms 0\ncable s0 s1 2s 1GB/s"), 2.75, 1e-8);
  EXPECT_NEAR(finish(job, "cable s0 s1 0 0"), 1.0, 1e-8);
  EXPECT_NEAR(finish(job, "cable s0 s1 0 0\ncable s0 s3 0 250MB/s"), 4.0, 1e-8);
}

TEST(LinkChanges, without_another_route_the_node_is_named) {
  const hardware::Cluster cluster = ring_of_switches(4, false, hardware::Routing::shortest);
  const FlowJob job = messages_on(cluster, {{0, 1, 1'000'000'000}});
  for (const char* changes : {"cable s0 s1 250ms 0\ncable s3 s2 300ms 0", "cable d0 s0 500ms 0"}) {
    try {
      run(job, changes);
      ADD_FAILURE() << changes;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("fails and does not come back"), std::string::npos) << error.what();
    }
  }
}

// Whatever fails when: every switch sends what it receives, and devices send and receive what their messages have.
TEST(LinkChangesLaw, routes_that_change_conserve_bytes) {
  const hardware::Routing policies[] = {hardware::Routing::shortest, hardware::Routing::d_mod_k,
                                        hardware::Routing::ecmp,     hardware::Routing::spread,
                                        hardware::Routing::valiant,  hardware::Routing::adaptive};
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomNumbers random(seed);
    const auto draw = [&](std::uint32_t most) { return random.below(most); };
    const std::uint32_t n = 4 + draw(5);
    const hardware::Cluster cluster = ring_of_switches(n, true, policies[seed % 6]);
    std::vector<Sent> all;
    std::vector<double> out(n, 0.0), in(n, 0.0);
    for (std::uint32_t i = 0; i < 3 * n; ++i) {
      const Sent sent{draw(n), draw(n), 1'000'000ULL * (1 + draw(1000))};
      if (sent.from == sent.to) { continue; }
      all.push_back(sent);
      out[sent.from] += static_cast<double>(sent.bytes), in[sent.to] += static_cast<double>(sent.bytes);
    }
    const std::uint32_t failed = draw(n);
    const auto name = [&](std::uint32_t i) { return "s" + std::to_string(i % n); };
    const results::Simulation simulation = run(
        messages_on(cluster, all), "cable " + name(failed) + " " + name(failed + 1) + " " + std::to_string(draw(2000)) +
                                       "ms 0\nchange s0 " + name(n / 2) + " " + std::to_string(draw(2000)) + "ms 0");
    const double rounding = 1e-6 * 1e9 * 3 * n;
    for (std::uint32_t i = 0; i < n; ++i) {
      double balance = 0;
      for (const results::LinkUse& use : simulation.link_uses) {
        const double bytes = 1e-12 * static_cast<double>(use.busy_ps) * use.bandwidth_Bps;
        balance += (use.to == name(i) ? bytes : 0) - (use.from == name(i) ? bytes : 0);
      }
      EXPECT_NEAR(balance, 0, rounding) << seed << " " << i;
      EXPECT_NEAR(bytes_on(simulation, "d" + std::to_string(i), name(i)), out[i], rounding) << seed;
      EXPECT_NEAR(bytes_on(simulation, name(i), "d" + std::to_string(i)), in[i], rounding) << seed;
    }
  }
}

// A ring all-reduce of 4 devices, 4 GB: each sends 6 GB to the next device. Without s0-s1 the message of d0 goes round
// the other way; on every cable of it, 3 others of the same direction are absent: the way back is free, 6 s as before.
TEST(LinkChanges, collectives_avoid_a_link_that_fails_for_good) {
  const hardware::Cluster cluster = ring_of_switches(4, false, hardware::Routing::shortest);
  FlowJob job = one_collective(cluster, Collective::all_reduce, 4'000'000'000, CollectiveAlgorithm::ring);
  job.by_link = true;
  const double alone = finish(job, "");
  const results::Simulation failed = run(job, "change s0 s1 0 0");
  EXPECT_NEAR(1e-9 * static_cast<double>(failed.makespan_ns()), alone, 1e-8);
  EXPECT_NEAR(bytes_on(failed, "s0", "s3"), 6e9, 1e3);
  EXPECT_NEAR(bytes_on(failed, "s0", "s1"), 0, 1e-9);
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
