#include "orrery/api/collective.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace orrery::api::collective_test {
namespace {

namespace fs = std::filesystem;

const std::string kData = ORRERY_SOURCE_DATA_DIR;

// ASTRA-sim's files for a ring of four: 50 GiB/s, 500 ns, four chunks.
simulate::SimulationFiles ring_of_four() {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::temp_directory_path() / ("orrery_collective_" + test);
  fs::create_directories(folder);
  std::ofstream(folder / "system.json") << R"({"preferred-dataset-splits": 4, "endpoint-delay": 10,
      "local-mem-bw": 1600, "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"]})";
  std::ofstream(folder / "network.yml") << "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n";
  simulate::SimulationFiles files;
  files.system = (folder / "system.json").string();
  files.network = (folder / "network.yml").string();
  return files;
}

// A chunk is 262144 B and a message 65536 B: 1720 ns on its way, 10 at the endpoint; six of them, three reduced in 3 x
// 40 ns, 10 ns before the first: 10750 ns, four times.
TEST(Collective, a_simulated_all_reduce_takes_what_its_messages_take) {
  const auto table = simulate_collective(ring_of_four(), {Collective::all_reduce, {1 << 20}});
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 1U);
  EXPECT_DOUBLE_EQ(table->rows[0].time.value(), 43000e-9);
  EXPECT_DOUBLE_EQ(table->rows[0].algbw.value(), 1048576 / 43000e-9);
  EXPECT_DOUBLE_EQ(table->rows[0].busbw.value(), 1.5 * 1048576 / 43000e-9);
  EXPECT_EQ(table->rows[0].algorithm, "ring");
  EXPECT_EQ(table->semantics, "astra-sim");
  EXPECT_EQ(table->ranks, 4U);
}

// The size is of all four shards: a chunk is 262144 B of a rank's 1 MiB, moved whole three times, 10 + 3 x (5382 + 10).
TEST(Collective, an_all_gather_s_size_is_that_of_all_shards) {
  const auto table = simulate_collective(ring_of_four(), {Collective::all_gather, {4 << 20}});
  ASSERT_TRUE(table);
  EXPECT_DOUBLE_EQ(table->rows[0].time.value(), 4 * 16186e-9);
  EXPECT_EQ(table->rows[0].count, 262144U);
}

TEST(Collective, simulations_side_by_side_are_those_one_after_the_other) {
  CollectiveRequest request{Collective::all_reduce, {}};
  for (std::uint64_t size = 1; size < 5'000'000; size = size * 3 + 1) { request.sizes.push_back(size); }
  simulate::SimulationFiles files = ring_of_four();
  files.threads = 1;
  const auto alone = simulate_collective(files, request);
  files.threads = 8;
  const auto together = simulate_collective(files, request);
  ASSERT_TRUE(alone && together);
  ASSERT_EQ(alone->rows.size(), request.sizes.size());
  for (std::size_t i = 0; i < alone->rows.size(); ++i) {
    EXPECT_EQ(alone->rows[i].time, together->rows[i].time) << request.sizes[i];
    EXPECT_EQ(together->rows[i].size_B, request.sizes[i]);
  }
}

TEST(Collective, what_the_files_do_not_have_is_refused) {
  const auto text = [](const auto& result) { return result ? std::string("no failure") : result.error().text(); };
  EXPECT_NE(text(simulate_collective(ring_of_four(), {Collective::broadcast, {8}})).find("--op"), std::string::npos);
  EXPECT_NE(text(simulate_collective(ring_of_four(), {Collective::all_to_all, {8}})).find("no algorithm"),
            std::string::npos);
  EXPECT_NE(text(simulate_collective(ring_of_four(), {Collective::all_gather, {3}})).find("--size"), std::string::npos);
}

// Whoever asks for nothing gets the cheapest of what can be asked for; the terms are the time.
TEST(Collective, the_cheapest_algorithm_of_a_cluster_is_no_slower_than_any) {
  const CollectiveRequest request{Collective::all_reduce, {1 << 10, 1 << 20, 1 << 30}};
  const auto best = price_collective(kData, "dgx-h100", 64, request);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->semantics, "physical");
  for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree,
                                              CollectiveAlgorithm::direct, CollectiveAlgorithm::in_switch}) {
    const auto table = price_collective(kData, "dgx-h100", 64, request, algorithm);
    ASSERT_TRUE(table);
    for (std::size_t i = 0; i < table->rows.size(); ++i) {
      if (algorithm != CollectiveAlgorithm::direct) { EXPECT_LE(best->rows[i].time, table->rows[i].time); }
      const auto& terms = table->rows[i].terms.value();
      EXPECT_NEAR((terms.base + terms.latency + terms.bandwidth + terms.reduction) / table->rows[i].time, 1.0, 1e-9);
    }
  }
}

TEST(Collective, an_algorithm_that_a_group_lacks_names_those_that_it_has) {
  const auto table =
      price_collective(kData, "dgx-h100", 8, {Collective::all_to_all, {1 << 20}}, CollectiveAlgorithm::in_switch);
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().text().find("valid: auto, ring, direct"), std::string::npos) << table.error().text();
}

TEST(Collective, one_device_does_not_communicate) {
  EXPECT_FALSE(price_collective(kData, "dgx-h100", 1, {Collective::all_reduce, {1 << 20}}));
}

}  // namespace
}  // namespace orrery::api::collective_test
