// Network files of ASTRA-sim as networks of clusters.
#include "orrery/hardware/astra_network.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/catalogue.hpp"

namespace orrery::hardware::astra_network_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNetwork =
    "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 100.0, 50.0 ]\nlatency: [ 50.0, 500.0 ]\n";

class AstraNetwork : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("astra_network_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_ / "nets");
    write("nets/network.yml", kNetwork);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  [[nodiscard]] Result<Cluster> cluster(const std::string& topology, std::int64_t devices = 0) const {
    return Catalogue(ORRERY_DATA_DIR).cluster(write("own.yaml", "accelerator: h100-sxm\n" + topology), devices);
  }
  [[nodiscard]] std::string error(const std::string& topology) const {
    const auto read = cluster(topology);
    return read ? "none" : read.error().text();
  }

  std::filesystem::path folder_;
};

// Written out by hand: 100 and 50 GB/s of a link, a step along the ring 50 ns, through the switch 2 x 500 ns.
TEST_F(AstraNetwork, of_a_cluster_is_the_description_that_it_stands_for) {
  const auto by_path = cluster("topology: nets/network.yml\n");
  ASSERT_TRUE(by_path) << by_path.error().text();
  const auto by_hand = cluster(R"(topology:
  kind: grid
  link: {latency: 50 ns, protocols: [{name: Simple, ring_base: 0, ring_step: 50 ns, tree_base: 0, tree_step: 50 ns}],
         name: astra-sim, efficiency: 1}
  bandwidth: 100 GB/s
  bandwidths: [100 GB/s, 50 GB/s]
  routing: shortest
  sizes: [4, 2]
  wirings: [ring, switched]
  axis_links:
  - {latency: 50 ns, protocols: [{name: Simple, ring_base: 0, ring_step: 50 ns, tree_base: 0, tree_step: 50 ns}],
     name: astra-sim, efficiency: 1}
  - {latency: 1 us, protocols: [{name: Simple, ring_base: 0, ring_step: 1 us, tree_base: 0, tree_step: 1 us}],
     name: astra-sim, efficiency: 1}
)");
  ASSERT_TRUE(by_hand) << by_hand.error().text();
  EXPECT_EQ(yaml_of(*by_path), yaml_of(*by_hand));
  EXPECT_EQ(by_path->devices, 8);
  EXPECT_DOUBLE_EQ(by_path->dimensions[1].link.latency.value(), 1e-6);
  EXPECT_EQ(cluster("topology: nets/network.yml\n", 4)->devices, 4);
}

TEST_F(AstraNetwork, of_a_cluster_can_be_changed) {
  const auto changed = cluster("topology: {use: nets/network.yml, routing: spread}\n");
  ASSERT_TRUE(changed) << changed.error().text();
  EXPECT_EQ(changed->topology->routing, Routing::spread);
  EXPECT_EQ(changed->topology->sizes, (std::vector<std::int64_t>{4, 2}));
}

TEST_F(AstraNetwork, errors_have_their_file_and_line) {
  write("nets/wrong.yml", "topology: [ Rong ]\nnpus_count: [ 4 ]\nbandwidth: [ 0 ]\nlatency: [ 50.0 ]\n");
  const std::string wrong = error("topology: nets/wrong.yml\n");
  EXPECT_THAT(wrong, HasSubstr("nets/wrong.yml:1:13 /topology/0: topology is \"Rong\"; did you mean Ring?"));
  EXPECT_THAT(wrong, HasSubstr("nets/wrong.yml:3:14 /bandwidth/0: bandwidth is 0; valid: above 0"));
  EXPECT_THAT(wrong, Not(HasSubstr("topology is missing")));
  EXPECT_THAT(error("topology: fat-tree\n"), HasSubstr("own.yaml:2:11 /topology: \"fat-tree\" is no file; valid: "));
  EXPECT_THAT(error("topology: own.yaml\n"), HasSubstr("own.yaml:2:11 /topology: \"own.yaml\" has no npus_count"));
  EXPECT_THAT(error("topology: nets/none.yml\n"), HasSubstr("nets/none.yml"));
  EXPECT_THAT(error("topology: {use: nets/network.yml, routng: spread}\n"),
              HasSubstr("own.yaml:2:35 /topology/routng"));
}

// A file of its own is a cluster only for those that need no accelerator.
TEST_F(AstraNetwork, alone_is_a_network_and_no_cluster) {
  const Catalogue catalogue(ORRERY_DATA_DIR);
  const std::string file = (folder_ / "nets/network.yml").string();
  const auto refused = catalogue.cluster(file, 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("is a network file of ASTRA-sim and has no accelerator; valid here: a "
                                                "cluster file with an accelerator and \"topology: network.yml\""));
  const auto network = catalogue.network(file, 0);
  ASSERT_TRUE(network) << network.error().text();
  const auto same = cluster("topology: nets/network.yml\n");
  EXPECT_EQ(network->name, "network");
  EXPECT_EQ(network->devices, 8);
  ASSERT_EQ(network->dimensions.size(), same->dimensions.size());
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(network->dimensions[d].size, same->dimensions[d].size);
    EXPECT_EQ(network->dimensions[d].bandwidth, same->dimensions[d].bandwidth);
    EXPECT_EQ(network->dimensions[d].link.latency, same->dimensions[d].link.latency);
  }
  EXPECT_EQ(catalogue.network("dgx-h100", 16)->devices, 16);
}

}  // namespace
}  // namespace orrery::hardware::astra_network_test
