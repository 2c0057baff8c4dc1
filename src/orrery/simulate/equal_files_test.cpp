// Graphs of equal files are read once and shared.
#include "orrery/simulate/equal_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "orrery/simulate/listed_files.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/test_jobs.hpp"
#include "orrery/trace/chakra.hpp"

namespace orrery::simulate::test::equal_files_test {
namespace {

namespace fs = std::filesystem;
using Positions = std::vector<std::uint32_t>;

class EqualFiles : public ::testing::Test {
 protected:
  EqualFiles() : folder_(fs::path(::testing::TempDir()) / ("equal_files_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~EqualFiles() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string written(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return file(name);
  }

  // The job of these ranks' nodes on a switch.
  [[nodiscard]] Result<SimulationJob> job_of(const std::vector<std::vector<NodeRecord>>& ranks,
                                             const std::string& groups = {}) const {
    SimulationFiles files;
    files.groups = groups;
    for (const auto& nodes : ranks) {
      files.graphs.push_back(file("w." + std::to_string(files.graphs.size()) + ".et"));
      EXPECT_TRUE(trace::write_chakra(graph_of(nodes), files.graphs.back()).has_value());
    }
    hardware::NetworkDimension links;
    links.size = static_cast<std::int64_t>(ranks.size());
    links.bandwidth = BytesPerSecond(1e9);
    hardware::Cluster cluster;
    cluster.dimensions = {links};
    cluster.devices = links.size;
    return read_job_on(cluster, files);
  }

 private:
  fs::path folder_;
};

TEST_F(EqualFiles, files_are_equal_if_all_their_bytes_are) {
  const std::string large(200'000, 'x');
  std::string other_end = large, other_middle = large;
  other_end.back() = other_middle[100'000] = 'y';
  const std::vector<std::string> files = {
      written("a", "abc"),     written("b", "abd"), written("c", "abc"),        written("d", large),
      written("e", other_end), written("f", large), written("g", other_middle), written("h", large),
      written("i", ""),        written("j", "")};
  EXPECT_EQ(first_equal_files(files, 1), (Positions{0, 1, 0, 3, 4, 3, 6, 3, 8, 8}));
  EXPECT_EQ(first_equal_files(files, 2), first_equal_files(files, 1));
}

TEST_F(EqualFiles, links_are_equal_and_files_that_cannot_be_read_are_not) {
  const std::string one = written("one", "abc"), copy = written("copy", "abc");
  fs::create_symlink(one, file("soft"));
  fs::create_hard_link(copy, file("hard"));
  EXPECT_EQ(first_equal_files({one, file("soft"), copy, file("hard"), file("missing"), file("missing"), "", ""}, 1),
            (Positions{0, 0, 0, 0, 4, 5, 6, 7}));
}

// Of a link, a missing file and an empty one among short and long files.
TEST_F(EqualFiles, files_that_are_known_to_be_regular_compare_alike) {
  const std::string large(200'000, 'x');
  std::vector<std::string> files = {written("a", "abc"), written("b", large), file("missing"),    written("c", "abc"),
                                    written("d", ""),    written("e", large), written("f", "abd")};
  fs::create_symlink(files[3], file("soft"));
  files.push_back(file("soft"));
  const Positions expected = first_equal_files(files, 1);
  EXPECT_EQ(expected, (Positions{0, 1, 2, 0, 4, 1, 6, 0}));
  EXPECT_EQ(first_equal_files(files, 2, {true, true, true, true, true, true, true, false}), expected);
  EXPECT_EQ(first_equal_files(files, 1, {true, false, false, false, true, true, true, false}), expected);
}

// Names with zeros in front, other prefixes and extensions, links and folders are not listed; few ranks are not,
// either.
TEST_F(EqualFiles, a_listing_names_the_regular_files_of_ranks_only) {
  for (const char* name : {"w.0.et", "w.7.et", "w.63.et", "w.64.et", "w.08.et", "w.9.et.gz", "w.et", "ww.10.et",
                           "w.11x.et", "w.-12.et", "w..et", "w.13.ET"}) {
    (void)written(name, "abc");
  }
  fs::create_symlink(file("w.0.et"), file("w.14.et"));
  fs::create_directory(file("w.15.et"));
  std::vector<bool> expected(64);
  expected[0] = expected[7] = expected[63] = true;
  EXPECT_EQ(listed_files(file("w"), 64), expected);
  EXPECT_EQ(listed_files(file("w"), 8), std::vector<bool>(8));
  EXPECT_EQ(listed_files(file("no folder/w"), 64), std::vector<bool>(64));
}

TEST_F(EqualFiles, ranks_with_equal_files_share_a_graph) {
  const std::vector<NodeRecord> one = {compute(1, 5), all_reduce(2, 1 << 20, {1})};
  const std::vector<NodeRecord> other = {compute(1, 7), all_reduce(2, 1 << 20, {1})};
  const auto job = job_of({one, other, one, other});
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(&job->rank_graphs[0], &job->rank_graphs[2]);
  EXPECT_EQ(&job->rank_graphs[1], &job->rank_graphs[3]);
  EXPECT_NE(&job->rank_graphs[0], &job->rank_graphs[1]);
  EXPECT_EQ(job->files[2], file("w.2.et"));
}

TEST_F(EqualFiles, a_graph_that_does_not_fit_a_rank_is_an_error_of_its_own_file) {
  const auto in_group = job_of({{all_reduce(1, 1024, {}, "7")}, {all_reduce(1, 1024, {}, "7")}, {compute(1, 1)}},
                               written("groups.json", R"({"7": [0, 2]})"));
  ASSERT_FALSE(in_group);
  EXPECT_EQ(in_group.error().text(),
            file("w.1.et") + " rank 1, node 1: is a collective of group 7, which does not contain rank 1");
  const auto to_itself = job_of({{send(1, 1, 1024)}, {send(1, 1, 1024)}});
  ASSERT_FALSE(to_itself);
  EXPECT_EQ(to_itself.error().text(), file("w.1.et") + " rank 1, node 1: has the comm_dst 1, its own rank");
}

TEST_F(EqualFiles, an_error_in_a_shared_graph_counts_for_all_its_ranks) {
  const auto job = job_of({{compute(1, 1)}, {send(1, 9, 1024)}, {send(1, 9, 1024)}});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().text(),
            file("w.1.et") + " rank 1, node 1: has the comm_dst 9; the ranks are 0 to 2 (2 ranks have errors)");
}

// Changing the graph of one rank leaves the others as they are.
TEST(RankGraphs, own_is_a_copy_if_the_graph_is_shared) {
  RankGraphs graphs;
  graphs.assign(3, RankGraph{{NodeTask{}}, {0, 0}, {}, {}});
  graphs.own(1).nodes[0].amount = 5;
  EXPECT_EQ(graphs[0].nodes[0].amount, 0U);
  EXPECT_EQ(graphs[1].nodes[0].amount, 5U);
  EXPECT_EQ(&graphs[0], &graphs[2]);
  const RankGraph* const before = &graphs[1];
  EXPECT_EQ(&graphs.own(1), before);
}

}  // namespace
}  // namespace orrery::simulate::test::equal_files_test
