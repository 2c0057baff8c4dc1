// Groups that graphs list themselves.
#include "orrery/simulate/listed_groups.hpp"

#include <string>

#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::listed_groups_test {
namespace {

constexpr std::uint32_t kRanks = 8;

// A METADATA node with a table; `values` must outlive it.
NodeRecord table(std::uint64_t id, std::string_view values) {
  NodeRecord made = node(id, NodeType::metadata);
  made.inputs = graph::IoInfo{values, "[[]]", "['String']"};
  return made;
}

Result<std::vector<Group>> listed(std::string_view values) {
  return listed_groups(graph_of({table(1, values)}), 0, "w.0.et", kRanks);
}

TEST(ListedGroups, tables_are_read_as_pytorch_and_exporters_write_them) {
  for (const char* values : {
           R"([{"pg_name": "1", "pg_desc": "tp", "ranks": [3, 1], "group_size": 2}])",
           R"(["[{\"pg_name\": \"1\", \"ranks\": [3, 1]}]"])",
           R"(['[{"pg_name": "1", "ranks": [3, 1]}]'])",
           R"("[{\"pg_name\": \"1\", \"ranks\": [3, 1]}]")",
       }) {
    const auto groups = listed(values);
    ASSERT_TRUE(groups) << values << ": " << groups.error().text();
    ASSERT_EQ(groups->size(), 1U) << values;
    EXPECT_EQ(groups->front().name, "1");
    EXPECT_EQ(groups->front().ranks, (std::vector<std::uint32_t>{3, 1}));
  }
}

TEST(ListedGroups, groups_of_all_ranks_and_of_larger_jobs_are_left_out_and_names_need_not_be_numbers) {
  const auto groups =
      listed(R"([{"pg_name": "0", "ranks": []}, {"pg_name": "dp", "ranks": [0]}, {"pg_name": "2", "ranks": [0, 8]}])");
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), 1U);
  EXPECT_EQ(groups->front().name, "dp");
}

TEST(ListedGroups, errors_name_file_and_node) {
  const auto text = [](const auto& result) { return result ? std::string("none") : result.error().text(); };
  EXPECT_NE(text(listed(R"([{"pg_name": "1"}])")).find("w.0.et rank 0, node 1: lists a process group without"),
            std::string::npos);
  EXPECT_NE(text(listed(R"([{"pg_name": "1", "ranks": ["x"]}])")).find("as a rank"), std::string::npos);
  EXPECT_NE(text(listed(R"([{"pg_name": "1", "ranks": [0, 0]}])")).find("twice"), std::string::npos);
  EXPECT_NE(text(listed(R"([{"pg_name": "1", "ranks": [0)")).find("cannot be read"), std::string::npos);
  EXPECT_NE(text(listed(R"([{"pg_name": "1", "ranks": [0]}, {"pg_name": "1", "ranks": [1]}])")).find("twice"),
            std::string::npos);
}

// Metadata of any other kind, as exporters write it.
TEST(ListedGroups, nodes_that_list_no_groups_are_ignored) {
  EXPECT_TRUE(listed("whatever [")->empty());
  EXPECT_TRUE(listed_groups(graph_of({compute(1, 1)}), 0, "f", kRanks)->empty());
}

ReadGraph using_group(std::uint32_t rank, std::uint32_t group, std::vector<Group> own) {
  ReadGraph read;
  read.rank = rank;
  read.file = "w." + std::to_string(rank) + ".et";
  read.graph.nodes.resize(1);
  read.graph.nodes[0].group = group;
  read.own = std::move(own);
  return read;
}

TEST(ListedGroups, groups_that_several_ranks_list_are_added_once_after_those_of_the_job) {
  std::vector<Group> groups = {{"7", {0, 1, 2, 3}}};
  std::vector<ReadGraph> graphs = {using_group(0, 2, {{"1", {0, 1}}}),
                                   using_group(1, 3, {{"2", {1, 2}}, {"1", {0, 1}}}), using_group(2, 1, {})};
  ASSERT_TRUE(join_groups(groups, graphs));
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(graphs[0].graph.nodes[0].group, 2U);  // {0, 1}
  EXPECT_EQ(graphs[1].graph.nodes[0].group, 2U);
  EXPECT_EQ(graphs[2].graph.nodes[0].group, 1U);  // the job's
}

TEST(ListedGroups, one_name_can_be_different_groups_of_different_ranks) {
  std::vector<Group> groups;
  std::vector<ReadGraph> graphs = {using_group(0, 1, {{"1", {0, 2}}}), using_group(1, 1, {{"1", {1, 3}}})};
  ASSERT_TRUE(join_groups(groups, graphs));
  EXPECT_NE(graphs[0].graph.nodes[0].group, graphs[1].graph.nodes[0].group);
}

TEST(ListedGroups, a_rank_in_two_groups_of_one_name_is_an_error) {
  std::vector<Group> groups;
  std::vector<ReadGraph> graphs = {using_group(0, 1, {{"1", {0, 1}}}), using_group(1, 1, {{"1", {1, 2}}})};
  const auto joined = join_groups(groups, graphs);
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().text().find("w.1.et rank 1: lists process group 1 with other ranks"), std::string::npos)
      << joined.error().text();
}

}  // namespace
}  // namespace orrery::simulate::test::listed_groups_test
