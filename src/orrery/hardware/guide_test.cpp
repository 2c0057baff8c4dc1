// The files of docs/guide/my-hardware.md load and mean what the guide says. A golden case runs its commands.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/catalogue.hpp"

namespace orrery::hardware::guide_test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = fs::path(ORRERY_DATA_DIR).parent_path();

std::string content(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The YAML blocks of the guide by the file name in their first line.
std::map<std::string, std::string> blocks() {
  std::map<std::string, std::string> found;
  std::istringstream guide(content(kRoot / "docs/guide/my-hardware.md"));
  std::string name;
  bool inside = false;
  for (std::string line; std::getline(guide, line);) {
    if (line == "```yaml") {
      inside = true;
      name.clear();
    } else if (line == "```") {
      inside = false;
    } else if (inside && name.empty()) {
      name = line.substr(2);
      found[name] = line + "\n";
    } else if (inside) {
      found[name] += line + "\n";
    }
  }
  return found;
}

class Guide : public ::testing::Test {  // NOLINT(cppcoreguidelines-virtual-class-destructor): gtest makes and ends it
 protected:
  Guide()
      : folder_(fs::path(::testing::TempDir()) /
                (std::string("orrery_guide_") + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
    for (const auto& [name, text] : blocks()) { std::ofstream(folder_ / name) << text; }
  }
  ~Guide() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
  Catalogue catalogue_{ORRERY_DATA_DIR};
};

TEST_F(Guide, a_chip_loads) {
  const auto chip = catalogue_.accelerator(file("my-chip.yaml"));
  ASSERT_TRUE(chip) << chip.error().text();
  EXPECT_EQ(chip->name, "my-chip");
  EXPECT_EQ(chip->efficiency(Precision::bf16), 0.7);
  EXPECT_EQ(chip->efficiency(Precision::fp8), 0.6);
  EXPECT_EQ(chip->basis, Basis::prior);
}

TEST_F(Guide, a_cluster_of_it_loads_and_grows) {
  const auto cluster = catalogue_.cluster(file("my-cluster.yaml"), 32);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->dimensions[1].size, 4);
  EXPECT_EQ(cluster->second_tier.memory, Bytes(192e9));
  EXPECT_EQ(cluster->usd_per_device_hour, 2.1);
  EXPECT_DOUBLE_EQ(cluster->dimensions[0].bandwidth_among(2).value(), 64e9);
  EXPECT_EQ(weakest_ground(*cluster).basis, Basis::prior);
}

TEST_F(Guide, entries_are_changed_in_place) {
  const auto cluster = catalogue_.cluster(file("my-inline.yaml"), 8);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->accelerator.memory_bandwidth, BytesPerSecond(4e12));
  EXPECT_FALSE(cluster->accelerator.sources.contains("memory_bandwidth"));
  EXPECT_EQ(cluster->dimensions[0].link.efficiency, 0.85);
  EXPECT_EQ(cluster->dimensions[1].link.name, "optical");
}

TEST_F(Guide, a_torus_fills_axis_after_axis) {
  for (const int devices : {1, 4, 8, 12, 16, 32, 64}) {
    EXPECT_TRUE(catalogue_.cluster(file("my-torus.yaml"), devices)) << devices;
  }
  EXPECT_FALSE(catalogue_.cluster(file("my-torus.yaml"), 20));
}

// 12.5 PFLOP/s over 84 parts fits; over 900,000 processing elements it does not.
TEST_F(Guide, a_wafer_has_as_many_cores_as_tiles_at_a_time) {
  auto wafer = catalogue_.cluster(file("my-wafers.yaml"), 4);
  ASSERT_TRUE(wafer) << wafer.error().text();
  EXPECT_EQ(wafer->second_tier.memory, Bytes(12e12));
  EXPECT_EQ(doubtful_cores(wafer->accelerator), "");
  wafer->accelerator.cores = 900'000;
  EXPECT_NE(doubtful_cores(wafer->accelerator).find("cores 900000 of my-wafer means 0.0139 TFLOP/s per core"),
            std::string::npos);
}

TEST_F(Guide, measurements_are_cited) {
  const auto chip = catalogue_.accelerator(file("my-measured-chip.yaml"));
  ASSERT_TRUE(chip) << chip.error().text();
  EXPECT_EQ(chip->basis, Basis::measured);
}

// The golden case that runs the guide's commands has the guide's files.
TEST_F(Guide, the_files_of_the_golden_case_are_those_of_the_guide) {
  const auto all = blocks();
  EXPECT_EQ(all.size(), 7U);
  for (const char* name : {"my-chip.yaml", "my-cluster.yaml", "my-torus.yaml"}) {
    EXPECT_EQ(content(kRoot / "tests/golden/guide_my_hardware" / name), all.at(name)) << name;
  }
}

}  // namespace
}  // namespace orrery::hardware::guide_test
