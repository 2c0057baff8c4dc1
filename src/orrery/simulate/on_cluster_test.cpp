// Clusters as machines; workloads as lists of graphs.
#include "orrery/simulate/on_cluster.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/fold.hpp"
#include "orrery/simulate/test_jobs.hpp"
#include "orrery/trace/chakra.hpp"

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
  EXPECT_EQ(job.network.dimensions[0].wiring, Wiring::mesh);
  EXPECT_NEAR(job.network.dimensions[0].bytes_per_second, 50e9, 1);  // 300 x 0.5 on 3 links
  EXPECT_EQ(job.network.dimensions[1].wiring, Wiring::ring);
  EXPECT_NEAR(job.network.dimensions[1].bytes_per_second, 40e9, 1);  // 100 x 0.8 on 2
  EXPECT_EQ(job.network.dimensions[2].wiring, Wiring::rails);
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

// Two nodes of two devices; the second one has `part` of the rates of the first.
hardware::Cluster two_kinds(double part) {
  using hardware::Wiring;
  hardware::Cluster made = cluster({dimension(Wiring::switched, 2, 300, 1), dimension(Wiring::rails, 2, 50, 1)});
  for (auto& links : made.dimensions) { links.link.protocols = {{"one", {}, Seconds(2e-6), {}, Seconds(3e-6)}}; }
  made.nodes = {{1, made.accelerator}, {1, made.accelerator}};
  hardware::Accelerator& second = made.nodes[1].accelerator;
  second.matrix_peak["bf16"] = second.matrix_peak["bf16"] * part;
  second.memory_bandwidth = second.memory_bandwidth * part;
  return made;
}

NodeRecord kernel(std::uint64_t id, std::int64_t operations, std::int64_t bytes, std::vector<std::uint64_t> parents) {
  NodeRecord made = node(id, NodeType::comp, std::move(parents));
  made.attributes = {number(keys::num_ops, operations), number(keys::tensor_size, bytes)};
  return made;
}

// The end of a job on links, and as flows with every rank and folded. All ranks have equal files.
std::vector<std::uint64_t> ends_on(const hardware::Cluster& machine, const std::vector<NodeRecord>& nodes) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "on_cluster_kinds";
  fs::create_directories(folder);
  SimulationFiles files;
  for (std::int64_t rank = 0; rank < machine.devices; ++rank) {
    files.graphs.push_back((folder / ("w." + std::to_string(rank) + ".et")).string());
    EXPECT_TRUE(trace::write_chakra(graph_of(nodes), files.graphs.back()).has_value());
  }
  const auto on_links = read_job_on(machine, files);
  files.backend = Backend::flow;
  const auto as_flows = read_job_on(machine, files);
  if (!on_links || !as_flows) { throw std::runtime_error("the graphs cannot be read"); }
  const auto links = simulate(*on_links);
  const auto flows = simulate_flows(unfolded(machine, *as_flows));
  const auto folded = simulate_flows(fold(unfolded(machine, *as_flows)).job);
  if (!links || !flows || !folded) { throw std::runtime_error("the job does not run"); }
  return {links->makespan_ns(), flows->makespan_ns(), folded->makespan_ns()};
}

// 1e12 operations on 1e9 B: 2 ms at 500 TFLOP/s; 1e9 on 2e9 B: 1 ms at 2 TB/s; a recorded time of 0.1 ms. At half of
// these rates 6 ms and 0.1 ms.
TEST(OnCluster, each_rank_has_the_kernel_times_of_its_node) {
  const std::vector<NodeRecord> nodes = {kernel(1, 1'000'000'000'000, 1'000'000'000, {}),
                                         kernel(2, 1'000'000'000, 2'000'000'000, {1}), compute(3, 100, {2})};
  EXPECT_EQ(ends_on(two_kinds(1.0), nodes), std::vector<std::uint64_t>(3, 3'100'000));
  EXPECT_EQ(ends_on(two_kinds(0.5), nodes), std::vector<std::uint64_t>(3, 6'100'000));
}

TEST(OnCluster, kinds_of_nodes_that_are_equal_change_nothing_and_slower_ones_never_help) {
  for (std::int64_t i = 1; i <= 12; ++i) {
    const std::vector<NodeRecord> nodes = {
        kernel(1, i * 123'456'789'123, (13 - i) * 98'765'432, {}), all_reduce(2, i * 1'000'003, {1}),
        kernel(3, i * 1'234'567, i * 7'654'321, {1}), all_reduce(4, (13 - i) * kMiB, {3})};
    hardware::Cluster plain = two_kinds(1.0);
    plain.nodes.clear();
    auto before = ends_on(plain, nodes);
    EXPECT_EQ(ends_on(two_kinds(1.0), nodes), before);
    for (const double part : {0.9, 0.5, 0.1}) {
      const auto ends = ends_on(two_kinds(part), nodes);
      for (std::size_t k = 0; k < ends.size(); ++k) { EXPECT_GE(ends[k], before[k]) << part; }
      EXPECT_EQ(ends[2], ends[1]);  // folded
      before = ends;
    }
  }
}

// One replica of two ranks, copied to the second node: as if four graphs were given.
TEST(OnCluster, copies_have_the_kernel_times_of_their_nodes) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "on_cluster_copies";
  fs::create_directories(folder);
  const std::vector<NodeRecord> nodes = {kernel(1, 1'000'000'000'000, 1'000'000'000, {}), compute(2, 100, {1})};
  SimulationFiles files;
  for (int rank = 0; rank < 2; ++rank) {
    files.graphs.push_back((folder / ("w." + std::to_string(rank) + ".et")).string());
    ASSERT_TRUE(trace::write_chakra(graph_of(nodes), files.graphs.back()).has_value());
  }
  files.backend = Backend::flow;
  files.copies = 2;
  for (const double part : {1.0, 0.5}) {
    const hardware::Cluster machine = two_kinds(part);
    const auto copied = read_job_on(machine, files);
    ASSERT_TRUE(copied) << copied.error().text();
    const auto simulation = simulate_flows(unfolded(machine, *copied));
    ASSERT_TRUE(simulation);
    EXPECT_EQ(simulation->ranks[1].finish_ns, 2'100'000U);
    EXPECT_EQ(simulation->ranks[2].finish_ns, 100'000U + static_cast<std::uint64_t>(2'000'000 / part));
    EXPECT_EQ(simulation->makespan_ns(), ends_on(machine, nodes).at(1));
  }
}

}  // namespace
}  // namespace orrery::simulate::test::on_cluster_test
