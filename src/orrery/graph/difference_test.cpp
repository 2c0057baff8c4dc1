#include "orrery/graph/difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/graph/test_graphs.hpp"

namespace orrery::graph::difference_test {
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

RC_GTEST_PROP(Difference, a_graph_with_other_ids_is_equal, (std::uint64_t seed)) {
  Random random(seed);
  const std::vector<NodeRecord> nodes = test::random_step(random, random.below(60));
  const auto found = difference(graph_of(nodes), graph_of(test::renumbered(random, nodes, false)));
  RC_ASSERT(found.none());
  RC_ASSERT(found.matched == nodes.size());
}

// Unique start times make the match unique; difference.hpp has the limits for other graphs.
RC_GTEST_PROP(Difference, a_graph_in_another_order_is_equal, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes = test::random_step(random, random.below(60));
  for (NodeRecord& record : nodes) { record.start_us = record.id; }
  RC_ASSERT(difference(graph_of(nodes), graph_of(test::renumbered(random, nodes, true))).none());
}

// A chain of identical layers: nodes differ only in their position in the chain.
RC_GTEST_PROP(Difference, chains_of_identical_layers_in_another_order_are_equal, (std::uint64_t seed)) {
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

RC_GTEST_PROP(Difference, an_additional_dependency_is_one_changed_node, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes = test::random_step(random, 8 + random.below(40));
  for (NodeRecord& record : nodes) { record.start_us = record.id; }
  const Graph before = graph_of(nodes);
  nodes.back().data_deps.push_back(1);  // node 1 is not yet a parent: parents are at most six positions before a node
  const auto found = difference(before, graph_of(test::renumbered(random, nodes, true)));
  RC_ASSERT(found.changed == 1 && found.only_in_a == 0 && found.only_in_b == 0 && found.metadata == 0);
  RC_ASSERT(found.first[0].a == nodes.back().id);
  RC_ASSERT(found.first[0].what.size() == 1);
  RC_ASSERT(found.first[0].what[0].starts_with("data_deps: with "));
}

RC_GTEST_PROP(Difference, an_additional_node_is_in_one_graph_only, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes = test::random_step(random, 1 + random.below(40));
  const Graph before = graph_of(nodes);
  nodes.push_back(named(nodes.size() + 1, "a new one", {1}));
  const Graph after = graph_of(test::renumbered(random, nodes, false));
  const auto found = difference(before, after);
  RC_ASSERT(found.only_in_b == 1 && found.only_in_a == 0 && found.changed == 0);
  RC_ASSERT(difference(after, before).only_in_a == 1);
}

TEST(Difference, lists_the_changed_fields_of_a_node) {
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

TEST(Difference, a_renamed_node_is_matched_by_its_neighbours) {
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

TEST(Difference, missing_parents_are_equal_whatever_their_ids) {
  EXPECT_TRUE(difference(graph_of({named(1, "a", {50})}), graph_of({named(1, "a", {60})})).none());
  const auto found = difference(graph_of({named(1, "a", {50, 51})}), graph_of({named(1, "a", {60})}));
  ASSERT_EQ(found.first.size(), 1U);
  EXPECT_THAT(found.first[0].what, ElementsAre("data_deps: without 51 of A"));
}

TEST(Difference, ignored_fields_make_no_difference) {
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

TEST(Difference, metadata_is_compared) {
  const auto found = difference(graph_of({}, {{"dp", {0, 1}}}), graph_of({}, {{"dp", {1, 0}}}));
  EXPECT_EQ(found.metadata, 1U);
  EXPECT_THAT(found.first[0].what, ElementsAre("process_group/dp: [0, 1] -> [1, 0]"));
}

TEST(Difference, cycles_and_empty_graphs_are_compared) {
  EXPECT_TRUE(difference(Graph(), Graph()).none());
  const Graph cycle = graph_of({named(1, "a", {2}), named(2, "b", {1})});
  EXPECT_TRUE(difference(cycle, graph_of({named(8, "b", {9}), named(9, "a", {8})})).none());
  EXPECT_EQ(difference(cycle, Graph()).only_in_a, 2U);
}

}  // namespace
}  // namespace orrery::graph::difference_test
