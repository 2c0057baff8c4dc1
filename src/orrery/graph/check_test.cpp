#include "orrery/graph/check.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/graph/test_graphs.hpp"
#include "orrery/graph/topology.hpp"

namespace orrery::graph::check_test {
namespace {

using test::collective;
using test::graph_of;
using test::node;
using test::Random;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Problem> problems(const std::vector<Finding>& findings) {
  std::vector<Problem> found;
  for (const Finding& finding : findings) { found.push_back(finding.problem); }
  return found;
}

// One error in a graph: the problem that the check must find, and the id of its node.
struct InjectedError {
  Problem problem;
  std::uint64_t node;
};

InjectedError inject_error(Random& random, std::vector<NodeRecord>& nodes, std::size_t which) {
  NodeRecord& changed = nodes[random.below(nodes.size())];
  switch (which) {
    case 0: {
      NodeRecord duplicate = changed;
      duplicate.data_deps.clear();
      duplicate.ctrl_deps.clear();
      nodes.push_back(std::move(duplicate));
      return {Problem::duplicate_id, nodes.back().id};
    }
    case 1: changed.data_deps.push_back(777'777); return {Problem::missing_parent, changed.id};
    case 2: changed.ctrl_deps.push_back(changed.id); return {Problem::self_dependency, changed.id};
    case 3: {
      NodeRecord& last = nodes.back();
      last.data_deps.assign(2, nodes.front().id);
      return {Problem::duplicate_dependency, last.id};
    }
    case 4: changed.type = static_cast<NodeType>(42); return {Problem::unknown_type, changed.id};
    case 5:
      changed.type = NodeType::comm_coll;
      changed.attributes = {test::number(keys::comm_size, 1)};
      return {Problem::missing_attribute, changed.id};
    default:
      changed.type = NodeType::mem_load;
      changed.attributes = {test::number(keys::tensor_size, -1)};
      return {Problem::unusable_attribute, changed.id};
  }
}

RC_GTEST_PROP(Check, a_sound_graph_has_no_findings_in_any_order_and_an_injected_error_is_found, (std::uint64_t seed)) {
  Random random(seed);
  std::vector<NodeRecord> nodes = test::random_step(random, 2 + random.below(40));
  RC_ASSERT(check(graph_of(nodes)).empty());
  RC_ASSERT(check(graph_of(test::renumbered(random, nodes, true))).empty());
  const auto [problem, id] = inject_error(random, nodes, random.below(7));
  const auto found = check(graph_of(nodes));
  RC_ASSERT(problems(found) == std::vector{problem});
  RC_ASSERT(found[0].unsound && found[0].count == 1);
  RC_ASSERT(found[0].examples[0].node == id);
  RC_ASSERT(found[0].examples[0].offset == 100 + id);
}

// Every node of the cycle depends on the next, for any back edge.
RC_GTEST_PROP(Check, the_nodes_of_a_cycle_depend_on_each_other, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t count = 2 + random.below(40);
  std::vector<NodeRecord> nodes = test::random_step(random, count);
  const std::size_t later = 1 + random.below(count - 1);
  const std::size_t earlier = random.below(later);
  nodes[earlier].data_deps.push_back(nodes[later].id);
  const bool closes_cycle = [&]() -> bool {
    std::vector<bool> reaches(count, false);  // from `earlier`, by children
    reaches[earlier] = true;
    for (std::size_t i = earlier + 1; i < count; ++i) {
      for (const auto* deps : {&nodes[i].data_deps, &nodes[i].ctrl_deps}) {
        for (const std::uint64_t parent : *deps) {
          if (parent - 1 < count && reaches[parent - 1]) { reaches[i] = true; }
        }
      }
    }
    return reaches[later];
  }();
  const Graph graph = graph_of(test::renumbered(random, nodes, true));
  const std::vector<NodeIndex> cycle = cycle_of(graph, run_order(graph));
  RC_ASSERT(cycle.empty() != closes_cycle);
  RC_ASSERT(problems(check(graph)) == (closes_cycle ? std::vector{Problem::cycle} : std::vector<Problem>{}));
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    bool found = false;
    const NodeIndex next = cycle[(i + 1) % cycle.size()];
    for_each_parent(graph, cycle[i], [&](NodeIndex parent) { found = found || parent == next; });
    RC_ASSERT(found);
  }
}

TEST(Check, reports_the_first_examples_of_each_problem_and_counts_all) {
  std::vector<NodeRecord> nodes;
  for (std::uint64_t id = 1; id <= 9; ++id) { nodes.push_back(node(id, NodeType::comp, {100 + id})); }
  const auto found = check(graph_of(nodes), {2, std::nullopt});
  ASSERT_THAT(problems(found), ElementsAre(Problem::missing_parent));
  EXPECT_EQ(found[0].count, 9U);
  ASSERT_EQ(found[0].examples.size(), 2U);
  EXPECT_EQ(found[0].examples[1].message, "has a data dependency on node 102, which is not in the file");
}

TEST(Check, a_barrier_needs_no_size_and_a_metadata_node_no_attributes) {
  NodeRecord barrier = node(1, NodeType::comm_coll);
  barrier.attributes = {test::number(keys::comm_type, 9)};
  EXPECT_THAT(check(graph_of({barrier, node(2, NodeType::metadata)})), IsEmpty());
}

TEST(Check, a_rank_must_be_a_member_of_the_groups_that_it_uses) {
  const Graph graph = graph_of({collective(1, CollectiveType::all_reduce, 8, "dp")}, {{"dp", {2, 3, 3}}});
  EXPECT_THAT(problems(check(graph, {3, 2})), ElementsAre(Problem::group_members));  // 3 twice
  const auto found = check(graph, {3, 1});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].count, 2U);
  EXPECT_THAT(found[0].examples[0].message, HasSubstr("whose ranks (2, 3, 3) do not include this rank, 1"));
}

// All 100,000 collectives of a rank that is not in their group of 400,000 ranks are findings. With a search of the
// group for each of them, or a message with all its ranks, the test would take minutes.
TEST(Check, a_group_of_400000_ranks_is_searched_once) {
  constexpr std::uint64_t kRanks = 400'000;
  constexpr std::uint64_t kCollectives = 100'000;
  ProcessGroup group{"dp", {}};
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) { group.ranks.push_back(rank); }
  std::vector<NodeRecord> nodes;
  for (std::uint64_t id = 1; id <= kCollectives; ++id) {
    nodes.push_back(collective(id, CollectiveType::all_reduce, 8, "dp"));
  }
  const auto found = check(graph_of(nodes, {group}), {1, kRanks});
  ASSERT_THAT(problems(found), ElementsAre(Problem::group_members));
  EXPECT_EQ(found[0].count, kCollectives);
  EXPECT_THAT(found[0].examples[0].message, HasSubstr("14, 15, … (400000 ranks)) do not include this rank, 400000"));
}

// For a single file, matching of sends, receives and collectives is unknown: a finding, but the file is sound.
TEST(Check, communication_of_a_single_file_is_reported_as_not_compared) {
  const Graph graph = graph_of({test::message(1, true, 1, 0, 8), collective(2, CollectiveType::all_reduce, 8)});
  EXPECT_THAT(check(graph, {3, 0, false}), IsEmpty());
  const auto found = check(graph, {3, 0, true});
  ASSERT_THAT(problems(found), ElementsAre(Problem::not_compared));
  EXPECT_TRUE(is_sound(found));
  EXPECT_THAT(found[0].examples[0].message, HasSubstr("sends 1, receives 0, collectives 1:"));
  EXPECT_THAT(check(graph_of({node(1)}), {3, 0, true}), IsEmpty());
}

TEST(Check, numbers_that_other_readers_misread_are_reported_and_sound) {
  NodeRecord reduce = collective(1, CollectiveType::all_reduce, 8);
  reduce.attributes[1].value = Value::natural(8);
  const auto found = check(graph_of({reduce}));
  EXPECT_THAT(problems(found), ElementsAre(Problem::odd_attribute));
  EXPECT_TRUE(is_sound(found));
}

TEST(Topology, ready_nodes_run_in_the_order_of_the_file) {
  const Graph graph = graph_of({node(1, NodeType::comp, {4}), node(2), node(3, NodeType::comp, {2}), node(4)});
  EXPECT_THAT(run_order(graph), ElementsAre(1, 2, 3, 0));
}

TEST(Topology, dependencies_of_a_node_on_itself_and_missing_parents_are_ignored) {
  const Graph graph = graph_of({node(1, NodeType::comp, {1, 9}), node(2, NodeType::comp, {1})});
  EXPECT_THAT(run_order(graph), ElementsAre(0, 1));
  EXPECT_THAT(cycle_of(graph, run_order(graph)), IsEmpty());
}

}  // namespace
}  // namespace orrery::graph::check_test
