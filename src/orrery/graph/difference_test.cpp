#include "orrery/graph/difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/graph/test_graphs.hpp"

namespace orrery::graph {
namespace {

using test::graph_of;
using test::node;
using test::Random;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NodeRecord named(std::uint64_t id, std::string_view name, std::vector<std::uint64_t> data = {}) {
  NodeRecord made = node(id, NodeType::comp, std::move(data));
  made.name = name;
  return made;
}

RC_GTEST_PROP(Difference, there_is_none_to_the_same_under_other_numbers, (std::uint64_t seed)) {
  Random random(seed);
  const std::vector<NodeRecord> nodes = test::random_step(random, random.below(60));
  const auto found = difference(graph_of(nodes), graph_of(test::renumbered(random, nodes, false)));
  RC_ASSERT(found.none());
  RC_ASSERT(found.matched == nodes.size());
}

// Names that occur once are enough for any order; see the header for what is not promised.
RC_GTEST_PROP(Difference, there_is_none_to_the_same_in_another_order, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes = test::random_step(random, random.below(60));
  for (NodeRecord& record : nodes) { record.start_us = record.id; }
  RC_ASSERT(difference(graph_of(nodes), graph_of(test::renumbered(random, nodes, true))).none());
}

// Layers that are alike, one after the other: only their place tells them apart.
RC_GTEST_PROP(Difference, there_is_none_between_chains_of_like_layers, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes;
  const std::size_t layers = 1 + random.below(30);
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::uint64_t id = 3 * layer;
    nodes.push_back(named(id + 1, "split", layer == 0 ? std::vector<std::uint64_t>{} : std::vector{id}));
    nodes.push_back(named(id + 2, "mm", {id + 1}));
    nodes.push_back(named(id + 3, "join", {id + 1, id + 2}));
  }
  RC_ASSERT(difference(graph_of(nodes), graph_of(test::renumbered(random, nodes, true))).none());
}

RC_GTEST_PROP(Difference, one_dependency_more_is_one_changed_node, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes = test::random_step(random, 8 + random.below(40));
  for (NodeRecord& record : nodes) { record.start_us = record.id; }
  const Graph before = graph_of(nodes);
  nodes.back().data_deps.push_back(1);  // parents of the last are at most six before it: not yet one
  const auto found = difference(before, graph_of(test::renumbered(random, nodes, true)));
  RC_ASSERT(found.changed == 1 && found.only_in_a == 0 && found.only_in_b == 0 && found.metadata == 0);
  RC_ASSERT(found.first[0].a == nodes.back().id);
  RC_ASSERT(found.first[0].what.size() == 1);
  RC_ASSERT(found.first[0].what[0].starts_with("data_deps: with "));
}

RC_GTEST_PROP(Difference, a_node_more_is_only_in_one_of_them, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes = test::random_step(random, 1 + random.below(40));
  const Graph before = graph_of(nodes);
  nodes.push_back(named(nodes.size() + 1, "a new one", {1}));
  const Graph after = graph_of(test::renumbered(random, nodes, false));
  const auto found = difference(before, after);
  RC_ASSERT(found.only_in_b == 1 && found.only_in_a == 0 && found.changed == 0);
  RC_ASSERT(difference(after, before).only_in_a == 1);
}

TEST(Difference, says_what_of_a_node_has_changed) {
  NodeRecord before = named(1, "mm");
  before.attributes = {test::number("num_ops", 5), test::number("gone", 1)};
  NodeRecord after = named(1, "mm");
  after.duration_us = 7;
  after.attributes = {{"num_ops", Value::natural(5), {}, {}}};
  const auto found = difference(graph_of({before}), graph_of({after}));
  ASSERT_EQ(found.first.size(), 1U);
  EXPECT_THAT(found.first[0].what,
              ElementsAre("duration_micros: 0 -> 7", "num_ops: 5 (int64_val) -> 5 (uint64_val)", "gone: 1 -> absent"));
}

TEST(Difference, a_renamed_node_is_found_between_its_neighbours) {
  const Graph a = graph_of({named(1, "first"), named(2, "old", {1}), named(3, "last", {2})});
  const Graph b = graph_of({named(1, "first"), named(2, "new", {1}), named(3, "last", {2})});
  const auto found = difference(a, b);
  EXPECT_EQ(found.changed, 1U);
  EXPECT_EQ(found.only_in_a + found.only_in_b, 0U);
  EXPECT_THAT(found.first[0].what, ElementsAre("name: \"old\" -> \"new\""));
  DifferenceOptions options;
  options.names = false;
  EXPECT_TRUE(difference(a, b, options).none());
}

TEST(Difference, parents_that_are_not_there_are_alike) {
  EXPECT_TRUE(difference(graph_of({named(1, "a", {50})}), graph_of({named(1, "a", {60})})).none());
  const auto found = difference(graph_of({named(1, "a", {50, 51})}), graph_of({named(1, "a", {60})}));
  ASSERT_EQ(found.first.size(), 1U);
  EXPECT_THAT(found.first[0].what, ElementsAre("data_deps: without 51 of A"));
}

TEST(Difference, what_is_ignored_is_ignored) {
  NodeRecord before = named(1, "mm");
  NodeRecord after = named(1, "mm");
  after.start_us = 4;
  after.inputs = IoInfo{"1", "2", "3"};
  after.attributes = {test::number("rf_id", 3), test::number(keys::duration_ns, 3)};
  DifferenceOptions options;
  options.times = false;
  options.io = false;
  options.attributes = {"rf_id"};
  EXPECT_TRUE(difference(graph_of({before}), graph_of({after}), options).none());
  EXPECT_EQ(difference(graph_of({before}), graph_of({after})).changed, 1U);
}

TEST(Difference, what_files_say_of_themselves_counts) {
  const auto found = difference(graph_of({}, {{"dp", {0, 1}}}), graph_of({}, {{"dp", {1, 0}}}));
  EXPECT_EQ(found.metadata, 1U);
  EXPECT_THAT(found.first[0].what, ElementsAre("process_group/dp: [0, 1] -> [1, 0]"));
}

TEST(Difference, cycles_and_graphs_of_nothing_are_compared_too) {
  EXPECT_TRUE(difference(Graph(), Graph()).none());
  const Graph cycle = graph_of({named(1, "a", {2}), named(2, "b", {1})});
  EXPECT_TRUE(difference(cycle, graph_of({named(8, "b", {9}), named(9, "a", {8})})).none());
  EXPECT_EQ(difference(cycle, Graph()).only_in_a, 2U);
}

}  // namespace
}  // namespace orrery::graph
