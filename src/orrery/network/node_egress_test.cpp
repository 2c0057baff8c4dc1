// Rings and trees that leave a node through one port.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"

namespace orrery::network::node_egress_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using hardware::Cluster;
using test::group_of;

Cluster nodes_and_switch(std::int64_t node, std::int64_t nodes, double devices_per_port = 0.0) {
  Cluster cluster = test::plain_cluster({node, nodes});
  for (auto& dimension : cluster.dimensions) { dimension.link.in_switch_efficiency = 0.0; }
  cluster.dimensions[0].bandwidth = 100_GBps;
  cluster.dimensions[1].link.port = cluster.dimensions[1].bandwidth * devices_per_port;
  return cluster;
}

Seconds bandwidth_of(const Cluster& cluster, const Group& group, NodeEgress egress) {
  return Fabric(cluster, egress).price(Collective::all_reduce, 16_GB, group).bandwidth;
}

// A flat ring among 4 x 4 sends 2 x 15/16 of 16 GB out of every node: 30 GB through 4 ports of 1 GB/s, or through one.
TEST(NodeEgress, one_port_has_the_traffic_of_all_members_of_a_node) {
  const Cluster cluster = nodes_and_switch(4, 4);
  EXPECT_NEAR(bandwidth_of(cluster, group_of({4, 4}), NodeEgress::one_port).value(), 30.0, 1e-9);
  EXPECT_NEAR(bandwidth_of(cluster, group_of({4, 4}), NodeEgress::all_ports).value(), 7.5, 1e-9);
}

// Two devices share a port of 2 GB/s, so a node of 4 devices has two ports. With groups of two members per node, both
// groups of a node use the same port; each sends 16 GB x 2 x 7/8 = 28 GB: 56 GB at 2 GB/s. With one group of four: 30
// GB at 2 GB/s.
TEST(NodeEgress, groups_of_a_node_use_the_same_port_where_devices_share_ports) {
  const Cluster cluster = nodes_and_switch(4, 4, 2.0);
  EXPECT_NEAR(bandwidth_of(cluster, group_of({2, 4}), NodeEgress::one_port).value(), 28.0, 1e-9);
  EXPECT_NEAR(bandwidth_of(cluster, group_of({4, 4}), NodeEgress::one_port).value(), 15.0, 1e-9);
}

TEST(NodeEgress, one_port_has_no_effect_with_one_member_per_node_two_nodes_or_one_node) {
  for (const double per_port : {0.0, 2.0}) {
    const Cluster cluster = nodes_and_switch(4, 8, per_port);
    for (const auto& members : std::vector<std::vector<std::int64_t>>{{1, 8}, {4, 2}, {2, 2}, {4, 1}}) {
      EXPECT_EQ(bandwidth_of(cluster, group_of(members), NodeEgress::one_port),
                bandwidth_of(cluster, group_of(members), NodeEgress::all_ports));
    }
  }
}

RC_GTEST_PROP(NodeEgress, one_port_is_never_faster_than_all_ports_and_more_bandwidth_never_slower, ()) {
  const auto node = *rc::gen::inRange<std::int64_t>(1, 9), nodes = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto bytes = Bytes(static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)));
  const auto collective = *rc::gen::element(Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                            Collective::all_to_all, Collective::broadcast);
  Cluster cluster = nodes_and_switch(node, nodes, *rc::gen::element(0.0, 2.0, 4.0));
  const Group group = group_of({*rc::gen::inRange<std::int64_t>(1, node + 1), nodes});
  const auto time = [&](NodeEgress egress) {
    return Fabric(cluster, egress).price(collective, bytes, group).time.value();
  };
  const double one = time(NodeEgress::one_port);
  constexpr double kRounding = 1.0 + 1e-12;
  RC_ASSERT(time(NodeEgress::all_ports) <= one * kRounding);
  cluster.dimensions[1].bandwidth *= 1.0 + 0.1 * static_cast<double>(*rc::gen::inRange(1, 60));
  RC_ASSERT(time(NodeEgress::one_port) <= one * kRounding);
}

}  // namespace
}  // namespace orrery::network::node_egress_test
