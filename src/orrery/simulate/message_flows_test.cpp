// One collective message by message on a cluster with a topology, against the closed form.
#include "orrery/simulate/message_flows.hpp"

#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "orrery/hardware/routes.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"

namespace orrery::simulate::test::message_flows_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

hardware::Cluster tree(std::int64_t domain) {
  return network::test::non_blocking_tree(network::test::plain_link(), domain);
}

double priced(const hardware::Cluster& cluster, Collective collective, double bytes) {
  network::Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    group.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size});
  }
  return network::Fabric(cluster).price(collective, Bytes(bytes), group, CollectiveAlgorithm::flat_ring).time.value();
}

// A ring through a non-blocking tree has every link to itself: the closed form of a flat ring.
TEST(MessageFlows, a_ring_takes_the_time_of_the_closed_form) {
  const auto cluster = tree(1);
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    for (const double bytes : {16384.0, 67108864.0}) {
      const auto run = simulate_messages(cluster, collective, Bytes(bytes), CollectiveAlgorithm::flat_ring);
      EXPECT_NEAR(run.time.value() / priced(cluster, collective, bytes), 1, 1e-9);
    }
  }
}

// Fat trees of 2 and 3 levels with one device on a leaf: every route passes 3 or 5 switches, and every step has 2 or 4
// of them beyond the first. With several devices on a leaf the closed form has the mean of the latencies of the ring's
// hops; messages have each its own, and the longest chain of 2 (n - 1) of them is without two hops inside a leaf.
hardware::Cluster levels(std::vector<std::int64_t> down, Seconds latency) {
  hardware::TopologySpec spec;
  spec.link = network::test::plain_link();
  spec.bandwidth = 1_GBps;
  spec.down = std::move(down);
  spec.up.assign(spec.down.size(), 1);
  for (std::size_t i = 1; i < spec.down.size(); ++i) { spec.up[i] = spec.down[i - 1]; }
  spec.switch_latency = latency;
  return network::test::cluster_on(std::move(spec));
}

TEST(SwitchLatencyLaw, a_ring_and_an_exchange_take_the_time_of_the_closed_form) {
  for (const auto& down : {std::vector<std::int64_t>{1, 8}, std::vector<std::int64_t>{1, 1, 8}}) {
    const auto plain = levels(down, Seconds(0)), cluster = levels(down, 1_us);
    ASSERT_EQ(cluster.dimensions.size(), 1U);
    const double further = 2e-6 * static_cast<double>(down.size() - 1);
    EXPECT_DOUBLE_EQ(cluster.dimensions[0].route_latency.value(), further);
    network::Group group;
    group.extents.push_back({0, 8});
    const auto times = [&](const hardware::Cluster& on, Collective collective, CollectiveAlgorithm algorithm) {
      const double closed = network::Fabric(on).price(collective, Bytes(1 << 20), group, algorithm).time.value();
      const double flow = simulate_messages(on, collective, Bytes(1 << 20), algorithm).time.value();
      return std::pair{closed, flow};
    };
    for (const auto& [collective, algorithm, steps] :
         {std::tuple{Collective::all_reduce, CollectiveAlgorithm::ring, 14.0},
          {Collective::all_gather, CollectiveAlgorithm::ring, 7.0},
          {Collective::all_to_all, CollectiveAlgorithm::direct, 1.0}}) {
      const auto [closed, flow] = times(cluster, collective, algorithm);
      const auto [before, flow_before] = times(plain, collective, algorithm);
      EXPECT_NEAR(flow, closed, 1e-9 * closed) << static_cast<int>(collective);
      EXPECT_NEAR(flow - flow_before, steps * further, 1e-12);
      EXPECT_NEAR(closed - before, steps * further, 1e-12);
    }
  }
}

TEST(SwitchLatencyLaw, a_ring_through_leaves_takes_the_longest_chain_of_its_hops) {
  for (const auto& down : {std::vector<std::int64_t>{4, 4}, std::vector<std::int64_t>{4, 2, 2}}) {
    const auto cluster = levels(down, 1_us);
    double all = 0;  // latency of the switches beyond the first, of all hops of the ring
    const hardware::Topology topology = hardware::build(*cluster.topology);
    hardware::Routes routes(topology);
    for (std::uint32_t i = 0; i < 16; ++i) {
      all += hardware::added_latency(topology, routes.route(i, (i + 1) % 16)).value();
    }
    const double closed = priced(cluster, Collective::all_reduce, 1 << 26);
    const auto run = simulate_messages(cluster, Collective::all_reduce, Bytes(1 << 26), CollectiveAlgorithm::ring);
    EXPECT_NEAR(run.time.value(), closed + 2 * all / 16, 1e-9 * closed);
    const auto plain =
        simulate_messages(levels(down, Seconds(0)), Collective::all_reduce, Bytes(1 << 26), CollectiveAlgorithm::ring);
    EXPECT_NEAR((run.time - plain.time).value(), 2 * all, 1e-9 * closed);
  }
}

// Along each dimension in chunks: leaf and spine share a port, of which several chunks use both at once. Groups of
// every fourth rank are one on each leaf.
TEST(MessageFlows, a_hierarchical_collective_takes_the_time_of_the_closed_form) {
  constexpr auto kAlgorithm = CollectiveAlgorithm::hierarchical;
  const auto cluster = tree(1);
  network::Group group;
  for (int d = 0; d < 2; ++d) { group.extents.push_back({d, 4}); }
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::all_to_all}) {
    const Bytes bytes(1 << 26);
    const auto price = network::Fabric(cluster).price(collective, bytes, group, kAlgorithm);
    const auto run = simulate_messages(cluster, collective, bytes, kAlgorithm);
    EXPECT_EQ(run.chunks, price.chunks);
    EXPECT_NEAR(run.time / price.time, 1, 0.02);
    network::Schedule schedule = network::Fabric(cluster).schedule(collective, bytes, group, kAlgorithm);
    schedule.chunks = 1;
    const auto one = simulate_messages(cluster, collective, bytes, kAlgorithm, {}, 1, 1);
    EXPECT_NEAR(one.time / network::Fabric(cluster).price(schedule).time, 1, 1e-9);
  }
  network::Group spine;
  spine.extents.push_back({1, 4});
  const auto price = network::Fabric(cluster).price(Collective::all_gather, Bytes(1 << 26), spine, kAlgorithm);
  const auto run = simulate_messages(cluster, Collective::all_gather, Bytes(1 << 26), kAlgorithm, {}, 4);
  EXPECT_NEAR(run.time / price.time, 1, 1e-9);
  EXPECT_EQ(refusal_of(cluster, Collective::all_reduce, kAlgorithm, 2), "");
  EXPECT_NE(refusal_of(cluster, Collective::gather, kAlgorithm), "");
}

// With domains there is a ring for each of their devices, and every port to the tree has its part: 2 (n - 1) / n of
// S / 4 through each. One ring alone would take four times as long.
TEST(MessageFlows, rings_use_the_ports_of_all_devices_of_a_domain) {
  const auto cluster = tree(4);
  const double bytes = 1 << 30, ports = 2 * 15.0 / 16 * bytes / 4 / 1e9;
  const auto run = simulate_messages(cluster, Collective::all_reduce, Bytes(bytes), CollectiveAlgorithm::ring);
  EXPECT_NEAR(run.time.value() / ports, 1, 0.01);
  EXPECT_EQ(run.messages, 4U * 16 * 30);
  EXPECT_NEAR(run.busiest_use, 1, 0.01);
}

// Up and down a tree of two levels: the buffer passes each port once each way, in chunks of 1/64 of it.
TEST(MessageFlows, switches_reduce_up_a_tree) {
  const double bytes = 1 << 30;
  const auto run = simulate_messages(tree(1), Collective::all_reduce, Bytes(bytes), CollectiveAlgorithm::in_switch);
  EXPECT_EQ(run.algorithm, CollectiveAlgorithm::in_switch);
  EXPECT_EQ(run.note, "");
  EXPECT_NEAR(run.time.value() / (bytes / 1e9), 1, 0.06);
  EXPECT_EQ(refusal_of(tree(1), Collective::barrier, CollectiveAlgorithm::in_switch), "");
  EXPECT_NE(refusal_of(tree(1), Collective::gather, CollectiveAlgorithm::in_switch), "");
  EXPECT_NE(refusal_of(tree(1), Collective::all_to_all, CollectiveAlgorithm::tree), "");
}

TEST(MessageFlows, groups_beyond_the_limit_of_the_switches_use_rings) {
  auto cluster = tree(1);
  cluster.topology->in_switch.emplace().groups = 2;
  const Bytes bytes(1 << 24);
  const auto run = simulate_messages(cluster, Collective::all_reduce, bytes, CollectiveAlgorithm::in_switch, {}, 4);
  EXPECT_EQ(run.note, "in_switch: switches serve 2 groups at once: 2 of 4 groups use ring instead");
  cluster.topology->in_switch->groups = 4;
  const auto all = simulate_messages(cluster, Collective::all_reduce, bytes, CollectiveAlgorithm::in_switch, {}, 4);
  EXPECT_EQ(all.note, "");
  EXPECT_LT(all.time, run.time);
  cluster.topology->in_switch->buffer = Bytes(1000);
  const auto none = simulate_messages(cluster, Collective::all_reduce, bytes, CollectiveAlgorithm::in_switch, {}, 4);
  EXPECT_EQ(none.algorithm, CollectiveAlgorithm::ring);
  EXPECT_NE(none.note.find("the buffer of"), std::string::npos) << none.note;
  EXPECT_EQ(refusal_of(cluster, Collective::all_reduce, CollectiveAlgorithm::ring, 3),
            "3 groups: must divide the 16 ranks, with at least 2 ranks in a group");
}

}  // namespace
}  // namespace orrery::simulate::test::message_flows_test
