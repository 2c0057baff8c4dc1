#include "orrery/api/feeder.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "orrery/graph/builder.hpp"

namespace orrery::api::feeder_test {
namespace {

namespace fs = std::filesystem;

class FeederFiles : public testing::Test {
 protected:
  FeederFiles() : folder_(fs::temp_directory_path() / ("orrery-api-feeder-test-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~FeederFiles() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // A node that depends on `parent`, if that is not itself.
  void write(const std::string& name, std::uint64_t id, std::uint64_t parent) const {
    graph::GraphBuilder builder;
    graph::NodeRecord node;
    node.id = id;
    node.type = graph::NodeType::comp;
    if (parent != id) { node.data_deps = {parent}; }
    builder.add(node);
    ASSERT_TRUE(trace::write_chakra(builder.finish().value(), path(name)));
  }

 private:
  fs::path folder_;
};

TEST_F(FeederFiles, of_a_job_are_one_per_rank_in_the_order_of_ranks) {
  for (std::uint64_t rank = 0; rank < 12; ++rank) {
    write("w." + std::to_string(rank) + (rank % 2 == 0 ? ".et" : ".et.gz"), rank, rank);
  }
  write("w.x.et", 1, 1);
  write("other.12.et", 1, 1);
  auto feeders = open_feeders(path("w"));
  ASSERT_TRUE(feeders) << feeders.error().text();
  ASSERT_EQ(feeders->size(), 12U);
  for (std::uint64_t rank = 0; rank < 12; ++rank) {
    EXPECT_EQ(feeders->at(rank).next().value()->id, rank);
    EXPECT_EQ(feeders->at(rank).streams(), rank % 2 == 0);
  }
  EXPECT_EQ(open_feeder(path("w.3.et.gz"))->nodes(), 1U);
}

TEST_F(FeederFiles, that_are_wrong_are_all_named) {
  write("w.0.et", 1, 7);
  write("w.1.et", 1, 1);
  write("w.2.et", 1, 8);
  const auto feeders = open_feeders(path("w"));
  ASSERT_FALSE(feeders);
  ASSERT_EQ(feeders.error().diagnostics.size(), 2U);
  EXPECT_THAT(feeders.error().diagnostics[0].text(), testing::HasSubstr("w.0.et: byte 3, node 1: can never run: it "
                                                                        "depends on node 7"));
  EXPECT_THAT(feeders.error().diagnostics[1].text(), testing::HasSubstr("w.2.et: byte 3, node 1"));
}

TEST_F(FeederFiles, that_are_left_out_are_named) {
  EXPECT_EQ(open_feeders(path("w")).error().text(), path("w") + ": " + path("w") + ".0.et does not exist");
  write("w.0.et", 1, 1);
  write("w.2.et", 1, 1);
  EXPECT_EQ(open_feeders(path("w")).error().text(),
            path("w") + ": rank 1 has no file, but rank 2 has " + path("w.2.et"));
}

}  // namespace
}  // namespace orrery::api::feeder_test
