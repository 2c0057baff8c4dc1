// ASTRA-sim's files: units and groups.
#include "orrery/simulate/read_inputs.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace orrery::simulate::test::read_inputs_test {
namespace {

std::string written(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::path(::testing::TempDir()) / name;
  std::ofstream(file) << text;
  return file.string();
}

TEST(ReadNetwork, bandwidth_is_in_2_to_the_30_bytes_per_second_for_astra_sim_and_1e9_for_physical) {
  const std::string file =
      written("units.yml", "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50.0]\nlatency: [500.0]\n");
  Warnings warnings;
  const auto bytes_per_second = [&](Semantics semantics) {
    return read_network(file, semantics, warnings).value().dimensions.front().bytes_per_second;
  };
  EXPECT_EQ(bytes_per_second(Semantics::astra_sim), 53'687'091'200.0);
  EXPECT_EQ(bytes_per_second(Semantics::physical), 50e9);
}

// Every wiring that a file can say is read as what it is printed as; rails are printed as Switch.
TEST(ReadNetwork, reads_the_names_that_it_prints) {
  for (const hardware::WiringNames& row : hardware::kWiringNames) {
    EXPECT_EQ(name_of(row.wiring), row.astra_sim);
    Warnings warnings;
    const std::string text = std::string("topology: [") + std::string(row.astra_sim) + "]\n";
    const auto network =
        read_network(written("names.yml", text + "npus_count: [4]\nbandwidth: [50.0]\nlatency: [500.0]\n"),
                     Semantics::physical, warnings);
    ASSERT_TRUE(network) << network.error().text();
    EXPECT_EQ(network->dimensions.front().wiring, row.wiring == Wiring::rails ? Wiring::switched : row.wiring);
  }
  EXPECT_EQ(name_of(Wiring::mesh), "FullyConnected");
}

TEST(ReadGroups, names_are_any_text_and_numbers_are_compared_as_numbers) {
  const auto groups = read_groups(written("names.json", R"({"tp": [0, 1], "007": [2]})"), 4);
  ASSERT_TRUE(groups) << groups.error().text();
  const GroupIndex index(*groups);
  EXPECT_EQ(index.find("tp"), 0U);
  EXPECT_EQ(index.find(group_key("7")), 1U);
  EXPECT_EQ(index.find("dp"), std::nullopt);
  EXPECT_TRUE(index.contains(0, 1));
  EXPECT_FALSE(index.contains(0, 2));
  const auto twice = read_groups(written("twice.json", R"({"7": [0, 1], "007": [2]})"), 4);
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().text().find("group 7 is listed twice"), std::string::npos) << twice.error().text();
}

// Processor time to read a group of `ranks` ranks; the minimum of three, because other processes add noise.
double reading_time(std::uint32_t ranks) {
  std::string text = "{\"1\": [0";
  for (std::uint32_t i = 1; i < ranks; ++i) { text += "," + std::to_string(i); }
  const std::string file = written("large.json", text + "]}");
  double minimum = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    EXPECT_TRUE(read_groups(file, ranks));
    minimum = std::min(minimum, static_cast<double>(std::clock() - start));
  }
  return minimum;
}

// With a linear check for duplicate ranks, 16 times as many ranks take 16 times as long; a comparison of all pairs
// takes up to 256 times as long, in every attempt.
TEST(ReadGroups, time_grows_with_the_ranks_and_not_with_their_square) {
  constexpr double kMost = 60;
  double ratio = 1e9;
  for (int attempt = 0; attempt < 5 && ratio >= kMost; ++attempt) {
    ratio = std::min(ratio, reading_time(160'000) / reading_time(10'000));
  }
  EXPECT_LT(ratio, kMost);
}

}  // namespace
}  // namespace orrery::simulate::test::read_inputs_test
