// Clusters as machines; workloads as lists of graphs.
#include "orrery/simulate/on_cluster.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::on_cluster_test {
namespace {

hardware::NetworkDimension dimension(hardware::Wiring wiring, std::int64_t size, double gigabytes, double efficiency) {
  hardware::NetworkDimension made;
  made.wiring = wiring;
  made.size = size;
  made.bandwidth = BytesPerSecond(gigabytes * 1e9);
  made.link.efficiency = efficiency;
  made.link.latency = Seconds(4e-6);
  return made;
}

hardware::Cluster cluster(const std::vector<hardware::NetworkDimension>& dimensions) {
  hardware::Cluster made;
  made.dimensions = dimensions;
  made.devices = 1;
  for (const auto& one : dimensions) { made.devices *= one.size; }
  made.accelerator.matrix_peak["bf16"] = FlopsPerSecond(500e12);
  made.accelerator.memory_bandwidth = BytesPerSecond(2000e9);
  return made;
}

TEST(OnCluster, link_bandwidths_of_a_wiring_add_up_to_that_of_the_device) {
  using hardware::Wiring;
  const SimulationJob job =
      machine_on(cluster({dimension(Wiring::mesh, 4, 300, 0.5), dimension(Wiring::ring, 8, 100, 0.8),
                          dimension(Wiring::switched, 1, 100, 1), dimension(Wiring::rails, 2, 50, 0.9)}));
  ASSERT_EQ(job.network.dimensions.size(), 3U);  // a dimension of one device has no links
  EXPECT_EQ(job.network.dimensions[0].topology, Topology::FullyConnected);
  EXPECT_NEAR(job.network.dimensions[0].bytes_per_second, 50e9, 1);  // 300 x 0.5 on 3 links
  EXPECT_EQ(job.network.dimensions[1].topology, Topology::Ring);
  EXPECT_NEAR(job.network.dimensions[1].bytes_per_second, 40e9, 1);  // 100 x 0.8 on 2
  EXPECT_EQ(job.network.dimensions[2].topology, Topology::Switch);
  EXPECT_NEAR(job.network.dimensions[2].bytes_per_second, 45e9, 1);
  EXPECT_NEAR(job.network.dimensions[2].latency_ns, 2000, 1e-9);  // 4 us from device to device, over two links
  EXPECT_NEAR(job.system.peak_tflops, 500, 1e-9);
  EXPECT_NEAR(job.system.local_memory_gb, 2000, 1e-9);
  EXPECT_EQ(job.semantics, Semantics::physical);
}

// Their process group is named "dp", in the metadata of the files.
TEST(OnCluster, the_example_traces_run) {
  const auto traces = std::filesystem::path(ORRERY_SOURCE_DATA_DIR).parent_path() / "examples/traces/step";
  const auto graphs = graphs_of({traces.string()});
  ASSERT_TRUE(graphs) << graphs.error().text();
  SimulationFiles files;
  files.graphs = *graphs;
  files.tables = true;
  const auto job = read_job_on(cluster({dimension(hardware::Wiring::switched, 2, 300, 0.5)}), files);
  ASSERT_TRUE(job) << job.error().text();
  const auto simulation = simulate(*job);
  ASSERT_TRUE(simulation) << simulation.error().text();
  ASSERT_FALSE(simulation->tables->collectives.empty());
  EXPECT_EQ(simulation->tables->collectives.front().group, "dp");
}

TEST(OnCluster, graphs_are_found_by_prefix_by_folder_and_by_name_in_the_order_of_ranks) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "on_cluster";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (int rank = 0; rank < 11; ++rank) { std::ofstream(folder / ("w." + std::to_string(rank) + ".et")) << "x"; }
  const auto by_folder = graphs_of({folder.string()}), by_prefix = graphs_of({(folder / "w").string()});
  ASSERT_TRUE(by_folder && by_prefix);
  EXPECT_EQ(*by_folder, *by_prefix);
  EXPECT_EQ(by_folder->size(), 11U);
  EXPECT_EQ(by_folder->at(10), (folder / "w.10.et").string());
  const auto files = graphs_of({(folder / "w.1.et").string(), (folder / "w.0.et").string()});
  ASSERT_TRUE(files);
  EXPECT_EQ(files->front(), (folder / "w.0.et").string());
  EXPECT_FALSE(graphs_of({(folder / "v").string()}));
  fs::remove(folder / "w.3.et");
  EXPECT_NE(graphs_of({folder.string()}).error().text().find("of rank 4, but none of rank 3"), std::string::npos);
  const auto sampled = graphs_of({folder.string()}, Gaps::allowed);
  ASSERT_TRUE(sampled) << sampled.error().text();
  EXPECT_EQ(sampled->size(), 10U);
  EXPECT_EQ(sampled->at(3), (folder / "w.4.et").string());
  EXPECT_EQ(graphs_of({(folder / "w.4.et").string()}, Gaps::allowed).value().size(), 1U);
  std::ofstream(folder / "v.0.et") << "x";
  EXPECT_NE(graphs_of({folder.string()}).error().text().find("several jobs"), std::string::npos);
}

}  // namespace
}  // namespace orrery::simulate::test::on_cluster_test
