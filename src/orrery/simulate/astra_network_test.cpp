// Networks of ASTRA-sim as topologies: messages between neighbours take the time of the links.
#include "orrery/hardware/astra_network.hpp"

#include <gtest/gtest.h>

#include "orrery/hardware/topology.hpp"
#include "orrery/simulate/message_flows.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/simulate.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::astra_network_test {
namespace {

constexpr std::uint64_t kBytes = 8'000'000;

hardware::Cluster cluster_of(const Network& network) {
  hardware::Cluster cluster;
  hardware::TopologySpec spec = hardware::topology_of(network.dimensions);
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  cluster.devices = network.ranks();
  cluster.topology = std::move(spec);
  return cluster;
}

double on_links(Wiring wiring, std::uint32_t ranks, const std::string& name, CollectiveType type) {
  Rig rig = Rig({{wiring, ranks}}, {name}).physical();
  rig.system.endpoint_delay_ns = 0;
  rig.system.local_memory_gb = 0;
  const auto done = run(rig, [&](std::uint32_t) { return std::vector{collective(0, type, kBytes)}; });
  EXPECT_TRUE(done);
  return 1e-9 * static_cast<double>(done->makespan_ns());
}

// Every message has its link to itself: a ring along each wiring, and all pairs of a mesh.
TEST(AstraNetworkLaw, flows_take_the_time_of_messages_on_links) {
  for (const std::uint32_t ranks : {2U, 3U, 8U}) {
    for (const Wiring wiring : {Wiring::ring, Wiring::mesh, Wiring::switched}) {
      Network network;
      network.dimensions = {{wiring, ranks, 50e9, 500}};
      const auto cluster = cluster_of(network);
      const auto flows = simulate_messages(cluster, Collective::all_reduce, Bytes(static_cast<double>(kBytes)),
                                           CollectiveAlgorithm::ring);
      EXPECT_NEAR(flows.time.value(), on_links(wiring, ranks, "ring", CollectiveType::all_reduce), 1e-8) << ranks;
    }
    Network network;
    network.dimensions = {{Wiring::mesh, ranks, 50e9, 500}};
    const auto flows = simulate_messages(cluster_of(network), Collective::all_to_all,
                                         Bytes(static_cast<double>(kBytes)), CollectiveAlgorithm::direct);
    EXPECT_NEAR(flows.time.value(), on_links(Wiring::mesh, ranks, "direct", CollectiveType::all_to_all), 1e-8) << ranks;
  }
}

TEST(AstraNetwork, has_the_dimensions_of_the_network) {
  Network network;
  network.dimensions = {{Wiring::ring, 4, 100e9, 50}, {Wiring::mesh, 3, 20e9, 500}, {Wiring::switched, 2, 10e9, 1000}};
  const auto cluster = cluster_of(network);
  ASSERT_EQ(cluster.dimensions.size(), 3U);
  EXPECT_DOUBLE_EQ(cluster.dimensions[0].bandwidth.value(), 200e9);
  EXPECT_DOUBLE_EQ(cluster.dimensions[1].bandwidth.value(), 40e9);
  EXPECT_DOUBLE_EQ(cluster.dimensions[2].bandwidth.value(), 10e9);
  EXPECT_DOUBLE_EQ(cluster.dimensions[2].link.latency.value(), 2e-6);
  const Network back = machine_on(cluster).network;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back.dimensions[i].wiring, network.dimensions[i].wiring);
    EXPECT_EQ(back.dimensions[i].ranks, network.dimensions[i].ranks);
    EXPECT_DOUBLE_EQ(back.dimensions[i].bytes_per_second, network.dimensions[i].bytes_per_second);
    EXPECT_DOUBLE_EQ(back.dimensions[i].latency_ns, network.dimensions[i].latency_ns);
  }
}

}  // namespace
}  // namespace orrery::simulate::test::astra_network_test
