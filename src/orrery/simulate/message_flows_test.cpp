// One collective message by message on a cluster with a topology, against the closed form.
#include "orrery/simulate/message_flows.hpp"

#include <gtest/gtest.h>

#include "orrery/hardware/topology.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"

namespace orrery::simulate::test::message_flows_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

// Leaves of four devices, non-blocking; with `domain` > 1, domains of so many devices at 9 GB/s.
hardware::Cluster tree(std::int64_t domain) {
  hardware::TopologySpec spec;
  spec.link = network::test::plain_link();
  spec.bandwidth = 1_GBps;
  spec.radix = 8;
  spec.blocks = 4;
  if (domain > 1) { spec.scale_up = hardware::ScaleUpDomain{domain, 9_GBps, spec.link}; }
  hardware::Cluster cluster;
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  cluster.devices = hardware::device_count(spec);
  cluster.topology = std::move(spec);
  return cluster;
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
