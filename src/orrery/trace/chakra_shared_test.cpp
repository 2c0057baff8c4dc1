// Every published Chakra file of the shared data is read without a note, and is equal after it is written and read
// again.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/trace/chakra.hpp"

namespace orrery::trace::chakra_shared_test {
namespace {

namespace fs = std::filesystem;

// The shared data are next to the repository, if they are present.
fs::path shared(const std::string& name) {
  return fs::path(ORRERY_SOURCE_DATA_DIR).parent_path().parent_path() / "shared/data" / name;
}

std::vector<fs::path> traces_below(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".et") { found.push_back(entry.path()); }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void expect_round_trip(const fs::path& path) {
  const auto read = read_chakra(path.string());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read->report.complete()) << path;
  EXPECT_EQ(read->report.file_bytes, fs::file_size(path)) << path;
  EXPECT_GT(read->graph.node_count(), 0U) << path;
  for (const Note& note : read->report.notes) { ADD_FAILURE() << path << ": " << note.text(); }
  const std::string written = chakra_bytes(read->graph);
  const auto back = read_chakra_bytes(written, path.string() + " (written)");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->graph, read->graph) << path;
  EXPECT_EQ(back->report.version, ChakraVersion::v0_0_4) << path;
  EXPECT_EQ(chakra_bytes(back->graph), written) << path;
}

// Unpacks an archive to a temporary folder.
class Unpacked {
 public:
  explicit Unpacked(const fs::path& archive)
      : folder_(fs::temp_directory_path() / ("orrery-shared-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    const std::string command = "tar -xf '" + archive.string() + "' -C '" + folder_.string() + "'";
    good_ = std::system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe, cert-env33-c)
  }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;
  ~Unpacked() { fs::remove_all(folder_); }

  [[nodiscard]] const fs::path& folder() const { return folder_; }
  [[nodiscard]] bool good() const { return good_; }

 private:
  fs::path folder_;
  bool good_ = false;
};

// Files of two generators and of a converter.
TEST(SharedTraces, plain_files_are_read_back) {
  const fs::path folder = shared("traces");
  if (!fs::exists(folder)) { GTEST_SKIP() << folder << " is not here"; }
  const auto traces = traces_below(folder);
  EXPECT_GE(traces.size(), 24U);
  for (const fs::path& trace : traces) { expect_round_trip(trace); }
}

// The largest converted trace: nodes without the type of the collective, and with a list of dimensions.
TEST(SharedTraces, a_converted_training_step_is_read_back) {
  const fs::path archive = shared("traces/chakra/feeder_tests_trace.tar.gz");
  if (!fs::exists(archive)) { GTEST_SKIP() << archive << " is not here"; }
  const Unpacked unpacked(archive);
  ASSERT_TRUE(unpacked.good());
  const auto traces = traces_below(unpacked.folder());
  ASSERT_EQ(traces.size(), 1U);
  expect_round_trip(traces[0]);
  const auto read = read_chakra(traces[0].string());
  EXPECT_EQ(read->graph.node_count(), 3664U);
  EXPECT_EQ(read->graph.data_dep_count(), 181'878U);
}

// Thousands of small files.
TEST(SharedTraces, inputs_of_astra_sim_are_read_back) {
  const fs::path archive = shared("astra-sim/inputs.tar.xz");
  if (!fs::exists(archive)) { GTEST_SKIP() << archive << " is not here"; }
  const Unpacked unpacked(archive);
  ASSERT_TRUE(unpacked.good());
  const auto traces = traces_below(unpacked.folder());
  EXPECT_GT(traces.size(), 1000U);
  constexpr std::size_t kStride = orrery::test::kSanitizers ? 5 : 1;
  for (std::size_t i = 0; i < traces.size(); i += kStride) { expect_round_trip(traces[i]); }
}

}  // namespace
}  // namespace orrery::trace::chakra_shared_test
