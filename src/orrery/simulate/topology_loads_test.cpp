// Collectives and messages on the links of topologies.
#include "orrery/simulate/topology_loads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/one_collective.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::topology_loads_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

hardware::Cluster cluster_of(hardware::TopologySpec spec) {
  spec.link = network::test::plain_link();
  spec.link.in_switch_efficiency = 0;
  spec.bandwidth = 1_GBps;
  hardware::Cluster cluster;
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  for (auto& dimension : cluster.dimensions) { dimension.most = dimension.size; }
  cluster.devices = hardware::device_count(spec);
  cluster.topology = std::move(spec);
  return cluster;
}

hardware::Cluster fat_tree(std::int64_t radix, std::int64_t blocks, double over) {
  hardware::TopologySpec spec;
  spec.radix = radix;
  spec.blocks = blocks;
  spec.oversubscription = {over};
  return cluster_of(spec);
}

hardware::Cluster grid(hardware::TopologyKind kind, std::vector<std::int64_t> sizes) {
  hardware::TopologySpec spec;
  spec.kind = kind;
  spec.sizes = std::move(sizes);
  spec.routing = hardware::Routing::spread;  // half-way round a ring, half of the bytes go either way
  return cluster_of(spec);
}

network::Group everyone(const hardware::Cluster& cluster) {
  network::Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    group.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size});
  }
  return group;
}

double simulated(const hardware::Cluster& cluster, Collective collective, std::uint64_t bytes) {
  const auto simulation = simulate_flows(one_collective(cluster, collective, bytes, CollectiveAlgorithm::automatic));
  EXPECT_TRUE(simulation);
  return 1e-9 * static_cast<double>(simulation->makespan_ns());
}

double priced(const hardware::Cluster& cluster, Collective collective, double bytes) {
  return network::Fabric(cluster).price(collective, Bytes(bytes), everyone(cluster)).time.value();
}

constexpr std::array kOperations = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                    Collective::all_to_all, Collective::broadcast};

// Domains of `size` devices at 9 GB/s below a non-blocking tree of 1 GB/s: devices of one domain have a leaf in common,
// too.
hardware::Cluster domains(std::int64_t size) {
  hardware::TopologySpec spec;
  spec.radix = 8;
  spec.blocks = 4;
  spec.scale_up = hardware::ScaleUpDomain{size, 9_GBps, network::test::plain_link()};
  spec.scale_up->link.in_switch_efficiency = 0;
  return cluster_of(spec);
}

// A collective of all devices is uncontended on non-blocking trees and on tori: the closed form, to the nanosecond.
TEST(TopologyLoads, uncontended_collectives_take_the_time_of_the_closed_form) {
  for (const hardware::Cluster& cluster :
       {fat_tree(8, 4, 1), domains(2), domains(4), grid(hardware::TopologyKind::torus, {4, 4})}) {
    for (const Collective collective : kOperations) {
      for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{1} << 26U}) {
        EXPECT_NEAR(simulated(cluster, collective, bytes), priced(cluster, collective, static_cast<double>(bytes)),
                    1.01e-9)
            << static_cast<int>(collective) << " of " << bytes << " on " << cluster.devices;
      }
    }
  }
}

hardware::Cluster with_latency(hardware::Cluster cluster, Seconds latency) {
  cluster.topology->switch_latency = latency;
  const auto dimensions = hardware::dimensions_of(*cluster.topology, hardware::build(*cluster.topology));
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    cluster.dimensions[d].route_latency = dimensions[d].route_latency;
  }
  return cluster;
}

// Switches beyond the first on the longest route of a level: 2 below the second one, 4 below the third one.
TEST(SwitchLatency, of_a_level_is_that_of_its_routes) {
  hardware::TopologySpec spec;
  spec.radix = 4;
  spec.levels = 3;
  const auto three = with_latency(cluster_of(spec), 1_us);
  ASSERT_EQ(three.dimensions.size(), 3U);
  EXPECT_DOUBLE_EQ(three.dimensions[0].route_latency.value(), 0);
  EXPECT_DOUBLE_EQ(three.dimensions[1].route_latency.value(), 2e-6);
  EXPECT_DOUBLE_EQ(three.dimensions[2].route_latency.value(), 4e-6);
  const auto torus = with_latency(grid(hardware::TopologyKind::torus, {4, 4}), 1_us);
  EXPECT_DOUBLE_EQ(torus.dimensions[1].route_latency.value(), 0);  // rings: neighbours only
  const auto mesh = with_latency(grid(hardware::TopologyKind::mesh, {4, 4}), 1_us);
  EXPECT_DOUBLE_EQ(mesh.dimensions[1].route_latency.value(), 2e-6);  // from the last one back to the first
}

// Whole calls and the closed form have the same latency of each level's steps, so they stay equal.
TEST(SwitchLatencyLaw, uncontended_collectives_take_the_time_of_the_closed_form) {
  hardware::TopologySpec three;
  three.radix = 4;
  three.levels = 3;
  three.routing = hardware::Routing::spread;  // other policies put several messages on one uplink
  for (const hardware::Cluster& plain : {fat_tree(8, 4, 1), cluster_of(three), domains(2)}) {
    const hardware::Cluster cluster = with_latency(plain, 1_us);
    for (const Collective collective : kOperations) {
      for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{1} << 26U}) {
        const double time = simulated(cluster, collective, bytes);
        EXPECT_NEAR(time, priced(cluster, collective, static_cast<double>(bytes)), 1.01e-9)
            << static_cast<int>(collective) << " of " << bytes << " on " << cluster.devices;
        EXPECT_GE(time, simulated(plain, collective, bytes));
        EXPECT_EQ(simulated(with_latency(plain, Seconds(0)), collective, bytes), simulated(plain, collective, bytes));
      }
    }
  }
}

// A message has the latency of its own route: 0, 2 or 4 switches beyond the first.
TEST(SwitchLatency, of_a_message_is_that_of_its_route) {
  hardware::TopologySpec spec;
  spec.radix = 4;
  spec.levels = 3;
  const auto plain = cluster_of(spec);
  const auto cluster = with_latency(plain, 1_us);
  const auto time_to = [](const hardware::Cluster& on, std::uint32_t to) {
    std::vector<std::vector<NodeRecord>> nodes(16, {compute(1, 1)});
    nodes[0] = {send(1, to, 1'000'000)};
    nodes[to] = {receive(1, 0, 1'000'000)};
    SimulationJob job = machine_on(on);
    job.backend = Backend::flow;
    const auto simulation = simulate_flows(unfolded(on, with_graphs(std::move(job), nodes)));
    EXPECT_TRUE(simulation);
    return 1e-9 * static_cast<double>(simulation->makespan_ns());
  };
  for (const auto& [to, switches] : {std::pair{1U, 0.0}, {2U, 2.0}, {4U, 4.0}, {15U, 4.0}}) {
    EXPECT_NEAR(time_to(cluster, to) - time_to(plain, to), switches * 1e-6, 1.01e-9) << to;
  }
}

// Uplinks that are oversubscribed slow a collective down, by no more than the closed form says, which has every phase
// between leaves at the oversubscribed rate.
TEST(TopologyLoads, oversubscribed_collectives_are_between_the_two_closed_forms) {
  const hardware::Cluster cluster = fat_tree(6, 4, 2);  // leaves of four devices and two uplinks
  hardware::Cluster full = cluster;
  full.dimensions[1].oversubscription = 1.0;
  for (const Collective collective : kOperations) {
    const double bytes = 1 << 28, time = simulated(cluster, collective, 1 << 28);
    EXPECT_GE(time, priced(full, collective, bytes) - 1e-9);
    EXPECT_LE(time, priced(cluster, collective, bytes) + 1e-9) << static_cast<int>(collective);
  }
}

// An all-to-all of n among m leaves of l: the uplinks of a leaf carry l (n - l) shards of S / n; two of 1 GB/s.
TEST(TopologyLoads, an_all_to_all_takes_the_time_of_its_uplinks) {
  const hardware::Cluster cluster = fat_tree(6, 4, 2);
  const double bytes = 1 << 30, uplinks = 4.0 * 12 * (bytes / 16) / 2e9;
  EXPECT_NEAR(simulated(cluster, Collective::all_to_all, 1 << 30) / uplinks, 1.0, 0.01);
}

// On one leaf a ring all-reduce of S among n puts 2 (n - 1) / n S on each link, in and out.
TEST(TopologyLoads, a_ring_loads_every_link_of_its_members_alike) {
  const hardware::Cluster cluster = fat_tree(8, 4, 1);
  std::vector<std::uint32_t> devices(16);
  std::iota(devices.begin(), devices.end(), 0U);
  TopologyLoads loads(cluster, devices);
  network::Group group;
  group.extents.push_back({0, 4});
  const auto schedule = network::make_schedule(Collective::all_reduce, CollectiveAlgorithm::ring, Bytes(4e6), group);
  const auto found = loads.collective(schedule, group, {4, 5, 6, 7});
  ASSERT_EQ(found.size(), 8U);
  for (const auto& load : found) { EXPECT_DOUBLE_EQ(load.bytes, 2 * 3 / 4.0 * 4e6); }
}

// Bytes out of devices = bytes into devices = what the members send, for every operation and network.
TEST(TopologyLoads, bytes_are_conserved) {
  hardware::TopologySpec spec;
  spec.kind = hardware::TopologyKind::dragonfly;
  spec.groups = 3;
  spec.routers = 2;
  spec.hosts = 2;
  spec.global_links = 1;
  spec.routing = hardware::Routing::valiant;
  for (const hardware::Cluster& cluster : {fat_tree(8, 4, 1), cluster_of(spec)}) {
    const auto ranks = static_cast<std::uint32_t>(cluster.devices);
    std::vector<std::uint32_t> all(ranks);
    std::iota(all.begin(), all.end(), 0U);
    TopologyLoads loads(cluster, all);
    const network::Fabric fabric(cluster);
    for (const Collective collective : kOperations) {
      const auto shape = everyone(cluster);
      double out = 0, in = 0;
      for (const auto& load : loads.collective(fabric.schedule(collective, Bytes(1e6), shape), shape, all)) {
        const auto& link = loads.topology().links[load.link];
        out += link.from < ranks ? load.bytes : 0;
        in += link.to < ranks ? load.bytes : 0;
      }
      EXPECT_GT(out, 0);
      EXPECT_NEAR(out, in, 1e-9 * out);
    }
  }
}

// Two messages from one leaf to another by d-mod-k: to devices 4 and 6 by one uplink each, alone; to 4 and 6 of the
// same number modulo two uplinks they share one, and take twice as long.
TEST(TopologyLoads, messages_share_an_uplink) {
  const hardware::Cluster cluster = fat_tree(6, 4, 2);
  const auto time = [&](std::int64_t first, std::int64_t second) {
    SimulationJob job = machine_on(cluster);
    job.backend = Backend::flow;
    const auto message = [](std::uint64_t id, bool sends, std::int64_t peer) {
      NodeRecord made = node(id, sends ? NodeType::comm_send : NodeType::comm_recv);
      made.attributes = {number(sends ? keys::comm_dst : keys::comm_src, peer), number(keys::comm_size, 1 << 30),
                         number(keys::comm_tag, 0)};
      return made;
    };
    const GroupIndex index(job.groups);
    for (std::int64_t rank = 0; rank < cluster.devices; ++rank) {
      std::vector<NodeRecord> nodes = {compute(1, 0)};
      if (rank == 0) { nodes.push_back(message(2, true, first)); }
      if (rank == 1) { nodes.push_back(message(2, true, second)); }
      if (rank == first) { nodes.push_back(message(2, false, 0)); }
      if (rank == second) { nodes.push_back(message(2, false, 1)); }
      auto compiled = compile(graph_of(nodes), static_cast<std::uint32_t>(rank), "", compile_context(job, index));
      EXPECT_TRUE(compiled);
      job.rank_graphs.push_back(std::move(*compiled));
      job.files.emplace_back();
    }
    const auto simulation = simulate_flows(unfolded(cluster, std::move(job)));
    EXPECT_TRUE(simulation);
    return 1e-9 * static_cast<double>(simulation->makespan_ns());
  };
  const double bytes = 1 << 30;
  EXPECT_NEAR(time(4, 5) / (bytes / 1e9), 1.0, 1e-4);
  EXPECT_NEAR(time(4, 6) / (2 * bytes / 1e9), 1.0, 1e-4);
}

}  // namespace
}  // namespace orrery::simulate::test::topology_loads_test
