#include "orrery/hardware/cluster.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace orrery::hardware::cluster_test {
namespace {

NetworkDimension dimension(std::string name, std::int64_t size) {
  NetworkDimension made;
  made.name = std::move(name);
  made.size = size;
  return made;
}

// Nodes of 8, as many as needed.
Cluster nodes_of_8() {
  Cluster cluster;
  cluster.name = "test";
  cluster.dimensions = {dimension("nvlink", 8), dimension("infiniband", 0)};
  return cluster;
}

// Nodes of 8, pods of 4 nodes, as many pods as needed.
Cluster pods_of_32() {
  Cluster cluster;
  cluster.name = "test";
  cluster.dimensions = {dimension("nvlink", 8), dimension("rail", 4), dimension("spine", 0)};
  return cluster;
}

std::vector<std::int64_t> sizes(const Result<Cluster>& cluster) {
  std::vector<std::int64_t> all;
  for (const auto& d : cluster.value().dimensions) { all.push_back(d.size); }
  return all;
}

using Sizes = std::vector<std::int64_t>;

TEST(Scaled, whole_nodes_set_the_outer_size) {
  const auto cluster = scaled(nodes_of_8(), 1024);
  EXPECT_EQ(sizes(cluster), (Sizes{8, 128}));
  EXPECT_EQ(cluster->devices, 1024);
  EXPECT_EQ(cluster->node_size(), 8);
}

TEST(Scaled, fewer_than_a_node_shrink_the_node) {
  EXPECT_EQ(sizes(scaled(nodes_of_8(), 6)), (Sizes{6, 1}));
  EXPECT_EQ(sizes(scaled(nodes_of_8(), 1)), (Sizes{1, 1}));
  EXPECT_EQ(sizes(scaled(nodes_of_8(), 8)), (Sizes{8, 1}));
}

TEST(Scaled, each_dimension_is_filled_before_the_next_one_opens) {
  EXPECT_EQ(sizes(scaled(pods_of_32(), 5)), (Sizes{5, 1, 1}));
  EXPECT_EQ(sizes(scaled(pods_of_32(), 24)), (Sizes{8, 3, 1}));
  EXPECT_EQ(sizes(scaled(pods_of_32(), 32)), (Sizes{8, 4, 1}));
  EXPECT_EQ(sizes(scaled(pods_of_32(), 96)), (Sizes{8, 4, 3}));
}

TEST(Scaled, the_sizes_multiply_to_the_devices) {
  for (std::int64_t devices = 1; devices <= 256; ++devices) {
    const auto cluster = scaled(pods_of_32(), devices);
    if (!cluster) { continue; }
    std::int64_t product = 1;
    for (const auto size : sizes(cluster)) { product *= size; }
    EXPECT_EQ(product, devices);
  }
}

TEST(Scaled, scaling_twice_within_the_node_does_not_bring_devices_back) {
  // A cluster of 4 has nodes of 4: what is scaled is the cluster at hand, not the entry it came from.
  EXPECT_EQ(sizes(scaled(*scaled(nodes_of_8(), 4), 8)), (Sizes{4, 2}));
}

TEST(Scaled, a_partly_filled_node_fails_naming_the_nearest_counts) {
  const auto cluster = scaled(nodes_of_8(), 12);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().text(), "12 devices are not a whole number of nodes of 8; nearest: 8 or 16");
  EXPECT_FALSE(cluster.error().answer_is_no);
}

// Blocks of four nodes: as full as they can be with the same number of nodes each.
TEST(Scaled, blocks_that_are_not_filled_are_filled_alike) {
  EXPECT_EQ(sizes(scaled(pods_of_32(), 40)), (Sizes{8, 1, 5}));
  EXPECT_EQ(sizes(scaled(pods_of_32(), 48)), (Sizes{8, 3, 2}));
  EXPECT_EQ(sizes(scaled(pods_of_32(), 80)), (Sizes{8, 2, 5}));
  Cluster pods = pods_of_32();
  pods.dimensions[1].size = 384;
  EXPECT_EQ(sizes(scaled(pods, 8192)), (Sizes{8, 256, 4}));
  EXPECT_EQ(sizes(scaled(pods, 16'384)), (Sizes{8, 256, 8}));
  EXPECT_EQ(sizes(scaled(pods, 9216)), (Sizes{8, 384, 3}));
  EXPECT_TRUE(scaled(pods, 8192)->warnings.empty());
}

// 389 nodes, a prime number: one node of each block.
TEST(Scaled, blocks_that_are_filled_by_less_than_a_quarter_give_a_warning) {
  Cluster pods = pods_of_32();
  pods.dimensions[1].size = 384;
  const auto cluster = scaled(pods, 8 * 389);
  EXPECT_EQ(sizes(cluster), (Sizes{8, 1, 389}));
  EXPECT_THAT(cluster->warnings,
              testing::ElementsAre(testing::HasSubstr("3112 devices do not fill blocks of 3072 evenly; "
                                                      "priced as 8 per \"rail\"")));
}

// Eight pods, one node of each more than eight: a job of 389 nodes is smaller than the cluster.
TEST(Scaled, a_limit_counts_devices_and_not_blocks_that_are_filled_in_part) {
  Cluster pods = pods_of_32();
  pods.dimensions[2].most = 8;
  EXPECT_EQ(sizes(scaled(pods, 8 * 29)), (Sizes{8, 1, 29}));
  EXPECT_EQ(scaled(pods, 8 * 37).error().text(),
            "296 devices: cluster \"test\" has at most 256, 8 along its outermost dimension spine");
}

// Racks of 72 in hosts of 4: jobs leave whole hosts out.
TEST(Scaled, racks_are_filled_by_hosts) {
  Cluster racks = nodes_of_8();
  racks.dimensions[0].size = 72;
  racks.dimensions[0].host = 4;
  EXPECT_EQ(sizes(scaled(racks, 1024)), (Sizes{64, 16}));
  EXPECT_EQ(sizes(scaled(racks, 720)), (Sizes{72, 10}));
  EXPECT_EQ(sizes(scaled(racks, 80)), (Sizes{40, 2}));
  EXPECT_EQ(sizes(scaled(racks, 1028)), (Sizes{4, 257}));
  EXPECT_EQ(scaled(racks, 74).error().text(), "74 devices are not a whole number of nodes of 4; nearest: 72 or 76");
}

TEST(Scaled, the_outermost_dimension_has_at_most_its_limit) {
  Cluster pod = nodes_of_8();
  pod.dimensions[1].most = 4;
  EXPECT_EQ(sizes(scaled(pod, 32)), (Sizes{8, 4}));
  EXPECT_EQ(scaled(pod, 40).error().text(),
            "40 devices: cluster \"test\" has at most 32, 4 along its outermost dimension infiniband");
}

// Every count that an error proposes is possible.
TEST(Scaled, the_nearest_counts_are_possible) {
  for (std::int64_t devices = 1; devices <= 3000; ++devices) {
    Cluster pods = pods_of_32();
    pods.dimensions[1].size = 24;
    const auto cluster = scaled(pods, devices);
    if (cluster) { continue; }
    const std::string text = cluster.error().text();
    const std::size_t at = text.find("nearest: ");
    ASSERT_NE(at, std::string::npos) << text;
    std::size_t end = 0;
    const std::string rest = text.substr(at + 9);
    EXPECT_TRUE(scaled(pods, std::stoll(rest, &end))) << text;
    if (const std::size_t second = rest.find(" or "); second != std::string::npos) {
      EXPECT_TRUE(scaled(pods, std::stoll(rest.substr(second + 4)))) << text;
    }
  }
}

TEST(Scaled, no_devices_and_too_many_are_refused) {
  EXPECT_EQ(scaled(nodes_of_8(), 0).error().text(), "0 devices: must be between 1 and 67108864");
  EXPECT_EQ(scaled(nodes_of_8(), -8).error().text(), "-8 devices: must be between 1 and 67108864");
  EXPECT_EQ(scaled(nodes_of_8(), kMaxDevices + 8).error().text(), "67108872 devices: must be between 1 and 67108864");
}

// 8 devices with 7 links of 64 GB/s: two of them have one link between them, four have three each.
TEST(Scaled, a_mesh_shrinks_with_its_links) {
  Cluster box = nodes_of_8();
  box.dimensions[0].wiring = Wiring::mesh;
  box.dimensions[0].bandwidth = BytesPerSecond(448e9);
  EXPECT_DOUBLE_EQ(scaled(box, 8)->dimensions[0].bandwidth.value(), 448e9);
  EXPECT_DOUBLE_EQ(scaled(box, 4)->dimensions[0].bandwidth.value(), 192e9);
  EXPECT_DOUBLE_EQ(scaled(box, 2)->dimensions[0].bandwidth.value(), 64e9);
  EXPECT_DOUBLE_EQ(scaled(box, 1)->dimensions[0].bandwidth.value(), 64e9);
}

TEST(Scaled, part_of_a_ring_is_a_line_with_half_the_bandwidth) {
  Cluster torus = nodes_of_8();
  torus.dimensions[0].wiring = Wiring::ring;
  torus.dimensions[0].bandwidth = BytesPerSecond(90e9);
  EXPECT_DOUBLE_EQ(scaled(torus, 16)->dimensions[0].bandwidth.value(), 90e9);
  EXPECT_DOUBLE_EQ(scaled(torus, 4)->dimensions[0].bandwidth.value(), 45e9);
}

TEST(WeakestGround, is_the_worst_of_the_accelerator_s_and_every_link_s_that_joins_anything) {
  Cluster cluster = nodes_of_8();
  cluster.accelerator.basis = Basis::measured;
  for (auto& dimension : cluster.dimensions) { dimension.link.basis = Basis::measured; }
  EXPECT_EQ(weakest_ground(cluster).basis, Basis::measured);
  cluster.dimensions[1].link.basis = Basis::generation;
  EXPECT_EQ(weakest_ground(cluster).basis, Basis::generation);
  EXPECT_EQ(weakest_ground(cluster).of, cluster.dimensions[1].link.name);
  EXPECT_EQ(weakest_ground(*scaled(cluster, 8)).basis, Basis::measured);  // nothing leaves the node
  EXPECT_EQ(weakest_ground(*scaled(cluster, 8), Links::all).basis, Basis::generation);
  cluster.accelerator.basis = Basis::prior;
  EXPECT_EQ(weakest_ground(cluster).basis, Basis::prior);
}

TEST(Scaled, a_single_dimension_with_a_size_holds_no_more) {
  Cluster box = nodes_of_8();
  box.dimensions.pop_back();
  EXPECT_EQ(sizes(scaled(box, 4)), (Sizes{4}));
  EXPECT_EQ(scaled(box, 16).error().text(),
            "16 devices: dimension nvlink has at most 8, and cluster \"test\" has no outer dimension");
}

// Expected largest of n standard normal samples: 0.5642, 1.4236, 2.5076, 3.2414 for n = 2, 8, 100, 1000 (tables of
// order statistics); the quantile is 5 % above for two, and closer from there on.
TEST(Stragglers, slowdown_is_one_plus_the_expected_largest_of_n_samples) {
  const auto spreads = [](std::int64_t n) { return (straggler_slowdown(0.01, n) - 1.0) / 0.01; };
  EXPECT_NEAR(spreads(2), 0.5642, 0.05 * 0.5642);
  EXPECT_NEAR(spreads(8), 1.4236, 0.01 * 1.4236);
  EXPECT_NEAR(spreads(100), 2.5076, 0.01 * 2.5076);
  EXPECT_NEAR(spreads(1000), 3.2414, 0.01 * 3.2414);
}

TEST(Stragglers, slowdown_is_one_for_one_device_and_grows_with_number_and_spread) {
  EXPECT_EQ(straggler_slowdown(0.3, 1), 1.0);
  EXPECT_EQ(straggler_slowdown(0.0, 1'000'000), 1.0);
  double before = 1.0;
  for (std::int64_t n = 1; n <= kMaxDevices; n = n * 3 / 2 + 1) {
    const double slowdown = straggler_slowdown(0.02, n);
    EXPECT_GE(slowdown, before) << n;
    EXPECT_LE(straggler_slowdown(0.01, n), slowdown) << n;
    before = slowdown;
  }
}

TEST(Scaled, sets_the_slowdown_of_the_slowest_node) {
  Cluster cluster = nodes_of_8();
  cluster.speed_spread = 0.02;
  EXPECT_EQ(scaled(cluster, 1)->accelerator.slowdown, 1.0);
  EXPECT_EQ(scaled(cluster, 8)->accelerator.slowdown, 1.0);  // what is measured on a node has its slowest device in it
  EXPECT_EQ(scaled(cluster, 800)->accelerator.slowdown, straggler_slowdown(0.02, 100));
  EXPECT_EQ(scaled(*scaled(cluster, 800), 8)->accelerator.slowdown, 1.0);
}

}  // namespace
}  // namespace orrery::hardware::cluster_test
