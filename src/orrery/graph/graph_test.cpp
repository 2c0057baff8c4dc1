#include "orrery/graph/graph.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/graph/builder.hpp"

namespace orrery::graph::graph_test {
namespace {

using std::uint64_t;
using testing::ElementsAre;
using testing::IsEmpty;

NodeRecord node(uint64_t id, std::vector<uint64_t> data = {}, std::vector<uint64_t> ctrl = {}) {
  NodeRecord record;
  record.id = id;
  record.name = "node";
  record.type = NodeType::comp;
  record.data_deps = std::move(data);
  record.ctrl_deps = std::move(ctrl);
  return record;
}

Graph graph_of(const std::vector<NodeRecord>& nodes) {
  GraphBuilder builder;
  for (const NodeRecord& record : nodes) { builder.add(record); }
  return builder.finish().value();
}

std::vector<uint64_t> ids(const Graph& graph, std::span<const NodeIndex> nodes) {
  std::vector<uint64_t> found;
  for (const NodeIndex index : nodes) { found.push_back(graph.id(index)); }
  return found;
}

TEST(Graph, is_empty_by_default) {
  const Graph graph;
  EXPECT_EQ(graph.node_count(), 0U);
  EXPECT_EQ(graph.find(0), std::nullopt);
  EXPECT_EQ(graph, GraphBuilder().finish().value());
}

TEST(Graph, parents_can_be_added_after_their_children) {
  const Graph graph = graph_of({node(7, {9}), node(9)});
  EXPECT_THAT(graph.data_deps(0), ElementsAre(1));
  EXPECT_EQ(graph.find(9), NodeIndex{1});
}

TEST(Graph, a_missing_parent_keeps_its_id) {
  const Graph graph = graph_of({node(1, {42, 1, 42}, {43}), node(2, {42})});
  EXPECT_THAT(ids(graph, graph.data_deps(0)), ElementsAre(42, 1, 42));
  EXPECT_THAT(ids(graph, graph.ctrl_deps(0)), ElementsAre(43));
  EXPECT_THAT(ids(graph, graph.data_deps(1)), ElementsAre(42));
  EXPECT_FALSE(graph.present(graph.data_deps(0)[0]));
  EXPECT_TRUE(graph.present(graph.data_deps(0)[1]));
  EXPECT_THAT(graph.missing_ids(), testing::UnorderedElementsAre(42, 43));
}

TEST(Graph, of_nodes_with_the_same_id_the_first_is_found_and_all_are_kept) {
  for (const uint64_t far : {uint64_t{6}, uint64_t{1} << 60}) {
    const Graph graph = graph_of({node(5), node(far), node(5), node(0, {5})});
    EXPECT_EQ(graph.node_count(), 4U);
    EXPECT_EQ(graph.find(5), NodeIndex{0});
    EXPECT_THAT(graph.data_deps(3), ElementsAre(0));
  }
}

TEST(Graph, repeated_self_and_circular_dependencies_are_kept) {
  const Graph graph = graph_of({node(0, {0, 1, 1}), node(1, {0})});
  EXPECT_THAT(graph.data_deps(0), ElementsAre(0, 1, 1));
  EXPECT_THAT(graph.data_deps(1), ElementsAre(0));
}

TEST(Graph, children_are_the_reversed_dependencies) {
  const Graph graph = graph_of({node(0), node(1, {0, 99}), node(2, {0, 1}, {0})});
  const Children both(graph);
  EXPECT_THAT(both.of(0), ElementsAre(1, 2, 2));
  EXPECT_THAT(both.of(1), ElementsAre(2));
  EXPECT_THAT(both.of(2), IsEmpty());
  EXPECT_THAT(Children(graph, Children::Of::ctrl).of(0), ElementsAre(2));
  EXPECT_THAT(Children(graph, Children::Of::data).of(0), ElementsAre(1, 2));
}

TEST(Graph, attributes_are_found_by_name_and_by_key) {
  NodeRecord with = node(0);
  with.attributes = {{"comm_size", Value::integer(5), {}, {}},
                     {"pg_name", Value::text("dp"), "about it", "\x18\x01"},
                     {"comm_size", Value::integer(6), {}, {}}};
  const Graph graph = graph_of({node(1), with});
  EXPECT_EQ(graph.value(1, "comm_size")->as_int(), 5);
  EXPECT_EQ(graph.value(1, graph.find_key("pg_name"))->as_text(), "dp");
  EXPECT_EQ(graph.value(0, "comm_size"), std::nullopt);
  EXPECT_EQ(graph.value(1, "nothing"), std::nullopt);
  EXPECT_EQ(graph.attributes(1).size(), 3U);
  EXPECT_EQ(graph.record(1).attributes, with.attributes);
}

TEST(Graph, exact_times_are_attributes_in_addition_to_whole_microseconds) {
  NodeRecord timed = node(0);
  timed.start_us = 3;
  timed.duration_us = 2;
  timed.attributes = {{keys::duration_ns, Value::natural(2345), {}, {}}};
  const Graph graph = graph_of({timed});
  EXPECT_EQ(graph.start_ns(0), 3000U);
  EXPECT_EQ(graph.duration_ns(0), 2345U);
}

TEST(Graph, groups_are_in_the_metadata) {
  GraphBuilder builder;
  builder.add_group({"dp", {0, 4, 2}});
  builder.set_metadata({"1.0.0", {{"schema", Value::text("x"), {}, {}}}, {}});
  builder.add_group({"", {}});
  const Graph graph = builder.finish().value();
  EXPECT_THAT(graph.groups(), ElementsAre(ProcessGroup{"dp", {0, 4, 2}}, ProcessGroup{"", {}}));
  EXPECT_EQ(graph.metadata().attributes.size(), 3U);
  EXPECT_EQ(graph.metadata().version, "1.0.0");
}

TEST(Graph, a_list_with_a_negative_number_is_not_a_group) {
  const std::string ranks = packed_integers(ValueType::int64_list, std::vector<std::int64_t>{0, -1});
  GraphBuilder builder;
  builder.set_metadata({{}, {{"process_group/dp", Value::view(ValueType::int64_list, ranks), {}, {}}}, {}});
  EXPECT_THAT(builder.finish().value().groups(), IsEmpty());
}

TEST(Graph, a_copy_outlives_the_graph_and_the_texts_of_records) {
  Graph copy;
  {
    std::string name(1000, 'x');
    NodeRecord record = node(3);
    record.name = name;
    const Graph graph = graph_of({record});
    copy = graph;
    name.assign(1000, 'y');
  }
  EXPECT_EQ(copy.name(0), std::string(1000, 'x'));
}

TEST(Graph, a_builder_can_be_reused) {
  GraphBuilder builder;
  builder.add(node(1));
  ASSERT_EQ(builder.finish().value().node_count(), 1U);
  builder.add(node(2, {1}));
  const Graph second = builder.finish().value();
  EXPECT_EQ(second.node_count(), 1U);
  EXPECT_FALSE(second.present(second.data_deps(0)[0]));
}

// 64 bytes a node: eight columns of 8, 8, 4, 8, 8, 8, 4, 4 and three begins of 4 (and one more of each).
TEST(Graph, takes_64_bytes_per_node_4_per_dependency_16_per_attribute) {
  GraphBuilder builder;
  NodeRecord record = node(0, {0, 0}, {0});
  record.attributes = {{"a", Value::integer(1), {}, {}}};
  for (uint64_t id = 0; id < 100'000; ++id) {
    record.id = id;
    builder.add(record);
  }
  const double each = static_cast<double>(builder.finish().value().memory()) / 100'000;
  EXPECT_NEAR(each, 64 + 3 * 4 + 16, 0.2);
}

RC_GTEST_PROP(Graph, has_the_ids_and_dependencies_of_the_records, (const std::vector<uint64_t>& own, uint64_t spread)) {
  GraphBuilder builder;
  std::vector<NodeRecord> nodes;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const uint64_t range = spread % 3 == 0 ? 0 : own.size() * (spread % 3);
    const auto folded = [&](uint64_t id) { return range == 0 ? id : id % (range + 1); };
    nodes.push_back(node(folded(own[i]), {folded(own[own.size() - 1 - i]), folded(own[i] / 2)}, {folded(own[0])}));
    builder.add(nodes.back());
  }
  const Graph graph = builder.finish().value();
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    RC_ASSERT(graph.record(i) == nodes[i]);
    const auto first =
        std::find_if(nodes.begin(), nodes.end(), [&](const NodeRecord& other) { return other.id == nodes[i].id; });
    RC_ASSERT(graph.find(nodes[i].id) == static_cast<NodeIndex>(first - nodes.begin()));
  }
}

RC_GTEST_PROP(Graph, has_the_texts_of_the_records, (const std::vector<std::string>& names)) {
  GraphBuilder builder;
  for (const std::string& name : names) {
    NodeRecord record = node(1);
    record.name = name;
    record.inputs = IoInfo{name, {}, "types"};
    builder.add(record);
  }
  const Graph graph = builder.finish().value();
  for (NodeIndex i = 0; i < names.size(); ++i) {
    RC_ASSERT(graph.name(i) == names[i]);
    RC_ASSERT(graph.inputs(i)->values == names[i]);
    RC_ASSERT(!graph.outputs(i));
  }
}

}  // namespace
}  // namespace orrery::graph::graph_test
