#include "orrery/graph/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/graph/anonymize.hpp"
#include "orrery/graph/fold.hpp"
#include "orrery/graph/test_graphs.hpp"

namespace orrery::graph::statistics_test {
namespace {

using test::collective;
using test::graph_of;
using test::node;
using test::Random;
using testing::ElementsAre;
using testing::IsEmpty;

NodeRecord timed(std::uint64_t id, std::uint64_t duration_us, std::vector<std::uint64_t> data = {}) {
  NodeRecord made = node(id, NodeType::comp, std::move(data));
  made.duration_us = duration_us;
  return made;
}

// 1 (5) -> 2 (1) -> 4 (2), and 1 (5) -> 3 (7) -> 4 (2): the path through 3 takes 14 us; the sum of all nodes is 15 us.
TEST(Statistics, the_critical_path_is_the_chain_with_the_longest_time) {
  const auto found = statistics(graph_of({timed(1, 5), timed(2, 1, {1}), timed(3, 7, {1}), timed(4, 2, {2, 3})}), 2);
  EXPECT_EQ(found.all, (Amount{4, 0, 15'000}));
  ASSERT_TRUE(found.critical_path);
  EXPECT_EQ(found.critical_path->time_ns, 14'000U);
  EXPECT_EQ(found.critical_path->nodes, 3U);
  ASSERT_EQ(found.critical_path->longest.size(), 2U);
  EXPECT_EQ(found.critical_path->longest[0].id, 3U);
  EXPECT_EQ(found.critical_path->longest[1].id, 1U);
  EXPECT_EQ(found.degrees, (Degrees{1, 1, 2, 2, 4, 1, 3}));
}

TEST(Statistics, a_graph_with_a_cycle_has_no_critical_path) {
  const auto found = statistics(graph_of({timed(1, 5, {2}), timed(2, 5, {1})}));
  EXPECT_FALSE(found.critical_path);
  EXPECT_EQ(found.degrees.levels, 0U);
}

TEST(Statistics, of_an_empty_graph_are_zero) {
  const auto found = statistics(Graph());
  EXPECT_EQ(found.all, Amount());
  EXPECT_EQ(found.critical_path->nodes, 0U);
  EXPECT_EQ(found.span_ns, std::nullopt);
}

TEST(Statistics, bytes_and_time_by_type_collective_group_and_name) {
  NodeRecord load = node(1, NodeType::mem_load);
  load.attributes = {test::number(keys::tensor_size, 100)};
  NodeRecord first = collective(2, CollectiveType::all_reduce, 10, "dp");
  first.name = "reduce.0";
  first.start_us = 3;
  first.attributes.push_back(test::number(keys::duration_ns, 1500));
  NodeRecord second = collective(3, CollectiveType::all_gather, 20);
  second.name = "reduce.17";
  const auto found = statistics(graph_of({load, first, second}, {{"dp", {0, 1}}}));
  EXPECT_THAT(found.by_type,
              ElementsAre(NamedAmount{"MEM_LOAD_NODE", {1, 100, 0}}, NamedAmount{"COMM_COLL_NODE", {2, 30, 1500}}));
  EXPECT_THAT(found.by_collective, ElementsAre(NamedAmount{"ALL_REDUCE", {1, 10, 1500}},  //
                                               NamedAmount{"ALL_GATHER", {1, 20, 0}}));
  EXPECT_THAT(found.by_group,
              ElementsAre(GroupAmount{std::nullopt, std::nullopt, {1, 20, 0}}, GroupAmount{"dp", 2, {1, 10, 1500}}));
  EXPECT_THAT(found.by_name, ElementsAre(NamedAmount{"reduce.#", {2, 30, 1500}}, NamedAmount{"node", {1, 100, 0}}));
  EXPECT_EQ(found.span_ns, 1500U);
  EXPECT_EQ(found.timed, 1U);
  EXPECT_EQ(found.started, 1U);
}

TEST(Statistics, sums_saturate) {
  const auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(statistics(graph_of({timed(1, most), timed(2, most, {1})})).critical_path->time_ns, most);
}

RC_GTEST_PROP(Statistics, do_not_depend_on_ids_or_order, (std::uint64_t seed)) {
  Random random(seed);
  const auto nodes = test::random_step(random, random.below(40));
  auto a = statistics(graph_of(nodes));
  auto b = statistics(graph_of(test::renumbered(random, nodes, true)));
  RC_ASSERT(a.all == b.all && a.by_type == b.by_type && a.by_group == b.by_group && a.by_name == b.by_name);
  RC_ASSERT(a.critical_path->time_ns == b.critical_path->time_ns);
  RC_ASSERT(a.degrees.levels == b.degrees.levels && a.degrees.roots == b.degrees.roots);
}

// Every node is in one folded node, every dependency between two folded nodes in one edge; time and bytes are
// conserved.
RC_GTEST_PROP(Fold, conserves_nodes_time_bytes_and_dependencies, (std::uint64_t seed)) {
  Random random(seed);
  const Graph graph = graph_of(test::random_step(random, random.below(40)));
  const Statistics all = statistics(graph);
  for (const Fold& fold : {Fold{}, Fold{Fold::By::name, 1}, Fold{Fold::By::depth, 1 + random.below(5)}}) {
    const Folded made = folded(graph, fold);
    Amount sum;
    for (const FoldedNode& node : made.nodes) {
      sum.count += node.count;
      sum.time_ns += node.time_ns;
      sum.bytes += node.bytes;
    }
    RC_ASSERT(sum == all.all);
    std::uint64_t edges = 0;
    for (const FoldedEdge& edge : made.edges) {
      edges += edge.count;
      RC_ASSERT(edge.parent < made.nodes.size() && edge.child < made.nodes.size());
      RC_ASSERT(edge.parent != edge.child || fold.by == Fold::By::none);
    }
    RC_ASSERT(edges <= graph.data_dep_count() + graph.ctrl_dep_count());
    if (fold.by == Fold::By::none) { RC_ASSERT(edges == graph.data_dep_count() + graph.ctrl_dep_count()); }
    if (fold.by == Fold::By::depth) {
      RC_ASSERT(made.nodes.size() <= 2 * (all.degrees.levels / fold.levels + 1));  // two types
    }
  }
}

TEST(Fold, by_name_ignores_numbers_and_separates_types) {
  NodeRecord a = node(1);
  a.name = "layer.1.mm";
  NodeRecord b = node(2, NodeType::comp, {1});
  b.name = "layer.22.mm";
  NodeRecord c = collective(3, CollectiveType::all_reduce, 1, "", {1, 2});
  c.name = "layer.1.mm";
  const Folded made = folded(graph_of({a, b, c}), {Fold::By::name, 1});
  ASSERT_EQ(made.nodes.size(), 2U);
  EXPECT_EQ(made.nodes[0].name, "layer.#.mm");
  EXPECT_EQ(made.nodes[0].count, 2U);
  EXPECT_EQ(made.nodes[1].name, "layer.1.mm");
  ASSERT_EQ(made.edges.size(), 1U);
  EXPECT_EQ(made.edges[0].count, 2U);
}

TEST(Fold, nodes_on_a_cycle_are_a_separate_level) {
  const Folded made =
      folded(graph_of({node(1), node(2, NodeType::comp, {3}), node(3, NodeType::comp, {2, 1})}), {Fold::By::depth, 10});
  ASSERT_EQ(made.nodes.size(), 2U);
  EXPECT_EQ(made.nodes[0].name, "level 0 to 9");
  EXPECT_EQ(made.nodes[1].name, "on a cycle, or after one");
}

RC_GTEST_PROP(Anonymizer, keeps_all_statistics_except_names, (std::uint64_t seed)) {
  Random random(seed);
  const Graph graph = graph_of(test::random_step(random, random.below(40)), {{"dp", {0, 1}}});
  Anonymizer anonymizer;
  const Graph plain = anonymizer.anonymized(graph).value();
  Statistics a = statistics(graph);
  Statistics b = statistics(plain);
  RC_ASSERT(a.degrees == b.degrees && a.by_type == b.by_type && a.by_collective == b.by_collective);
  RC_ASSERT(a.by_group.size() == b.by_group.size());
  RC_ASSERT(a.critical_path->time_ns == b.critical_path->time_ns && a.span_ns == b.span_ns && a.all == b.all);
  for (NodeIndex i = 0; i < graph.node_count(); ++i) {
    for (NodeIndex j = 0; j < graph.node_count(); ++j) {
      RC_ASSERT((graph.name(i) == graph.name(j)) == (plain.name(i) == plain.name(j)));
    }
  }
  RC_ASSERT(anonymizer.anonymized(plain).value().node_count() == plain.node_count());
}

TEST(Anonymizer, removes_all_texts_of_the_model) {
  NodeRecord secret = collective(1, CollectiveType::all_reduce, 8, "secret-group");
  secret.name = "secret";
  secret.inputs = IoInfo{"secret", "secret", "secret"};
  secret.unknown = "secret";
  secret.attributes.push_back({"secret", Value::text("secret"), "secret", "secret"});
  secret.attributes.push_back({keys::num_ops, Value::integer(3), "secret", "secret"});
  secret.attributes.push_back({keys::comm_tag, Value::text("secret"), {}, {}});  // usually a number
  GraphBuilder builder;
  Metadata metadata;
  metadata.version = "secret";
  metadata.unknown = "secret";
  metadata.attributes = {{"secret", Value::text("secret"), {}, {}}};
  builder.set_metadata(metadata);
  builder.add_group({"secret-group", {0}});
  builder.add(secret);
  const Graph plain = Anonymizer().anonymized(builder.finish().value()).value();
  const NodeRecord anonymized = plain.record(0);
  EXPECT_EQ(anonymized.name, "n0");
  EXPECT_FALSE(anonymized.inputs);
  EXPECT_THAT(anonymized.unknown, IsEmpty());
  ASSERT_EQ(anonymized.attributes.size(), 4U);  // comm_type, comm_size, pg_name, num_ops
  EXPECT_EQ(anonymized.attributes[2].value.as_text(), "g0");
  EXPECT_EQ(anonymized.attributes[3], test::number(keys::num_ops, 3));
  EXPECT_EQ(plain.metadata().version, "");
  EXPECT_THAT(plain.groups(), ElementsAre(ProcessGroup{"g0", {0}}));
}

TEST(Anonymizer, equal_names_stay_equal_between_graphs_and_numeric_group_names_are_kept) {
  Anonymizer anonymizer;
  NodeRecord a = collective(1, CollectiveType::all_reduce, 8, "7");
  a.name = "x";
  NodeRecord b = collective(1, CollectiveType::all_reduce, 8, "tp");
  b.name = "y";
  const Graph first = anonymizer.anonymized(graph_of({a})).value();
  const Graph second = anonymizer.anonymized(graph_of({b, a})).value();
  EXPECT_EQ(first.name(0), second.name(1));
  EXPECT_NE(first.name(0), second.name(0));
  EXPECT_EQ(first.value(0, keys::pg_name)->as_text(), "7");
  EXPECT_EQ(second.value(0, keys::pg_name)->as_text(), "g0");
}

}  // namespace
}  // namespace orrery::graph::statistics_test
