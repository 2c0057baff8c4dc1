#include "orrery/graph/job_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/graph/test_graphs.hpp"

namespace orrery::graph::job_check_test {
namespace {

using test::collective;
using test::graph_of;
using test::message;
using test::node;
using test::Random;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Ranks = std::vector<std::vector<NodeRecord>>;

std::vector<Finding> checked(const Ranks& ranks, JobCheckOptions options = {},
                             const std::vector<ProcessGroup>& groups = {}) {
  JobCheck job(std::move(options));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) { job.add(rank, graph_of(ranks[rank], groups)); }
  return job.findings();
}

std::vector<Problem> problems(const std::vector<Finding>& findings) {
  std::vector<Problem> found;
  for (const Finding& finding : findings) { found.push_back(finding.problem); }
  return found;
}

// All ranks run the same sequence: collectives of all ranks, collectives of a group, and rings of messages.
Ranks random_job(Random& random) {
  const std::size_t count = 2 + random.below(4);
  Ranks ranks(count);
  std::uint64_t id = 0;
  for (std::size_t step = 1 + random.below(8); step > 0; --step) {
    const std::size_t what = random.below(3);
    const auto size = static_cast<std::int64_t>(1 + random.below(3));
    const std::int64_t tag = static_cast<std::int64_t>(random.below(2));
    for (std::size_t rank = 0; rank < count; ++rank) {
      const std::vector<std::uint64_t> before = id == 0 ? std::vector<std::uint64_t>{} : std::vector{id};
      const auto next = static_cast<std::int64_t>((rank + 1) % count);
      const auto previous = static_cast<std::int64_t>((rank + count - 1) % count);
      if (what == 0) {
        ranks[rank].push_back(collective(id + 1, CollectiveType::all_reduce, size, "", before));
        ranks[rank].push_back(node(id + 2, NodeType::comp, {id + 1}));
      } else if (what == 1) {
        ranks[rank].push_back(collective(id + 1, CollectiveType::all_gather, size, "tp", before));
        ranks[rank].push_back(node(id + 2, NodeType::comp, {id + 1}));
      } else {
        ranks[rank].push_back(message(id + 1, true, next, tag, size, before));
        ranks[rank].push_back(message(id + 2, false, previous, tag, size, {id + 1}));
      }
    }
    id += 2;
  }
  return ranks;
}

RC_GTEST_PROP(JobCheck, ranks_with_the_same_sequence_have_no_findings, (std::uint64_t seed)) {
  Random random(seed);
  const Ranks ranks = random_job(random);
  RC_ASSERT(checked(ranks).empty());
}

// One communication node of one rank is removed or changed: the check finds it, on that rank or on one that waits for
// it.
RC_GTEST_PROP(JobCheck, a_changed_communication_node_is_found, (std::uint64_t seed)) {
  Random random(seed);
  Ranks ranks = random_job(random);
  std::vector<NodeRecord>& changed = ranks[random.below(ranks.size())];
  const std::size_t at = random.below(changed.size() / 2) * 2;
  NodeRecord& call = changed[at];
  const bool is_collective = call.type == NodeType::comm_coll;
  const std::size_t change = random.below(3);
  if (change == 0) {
    call.type = NodeType::comp;  // removed
  } else if (change == 1) {
    call.attributes[is_collective ? 1 : 2] = test::number(keys::comm_size, 99);
  } else if (is_collective) {
    call.attributes[0] = test::number(keys::comm_type, static_cast<int>(CollectiveType::reduce));
  } else {
    call.attributes[1] = test::number(keys::comm_tag, 77);
  }
  ProcessGroup tp{"tp", {}};  // without a list, a rank that does not use the group is not a member
  for (std::uint64_t rank = 0; rank < ranks.size(); ++rank) { tp.ranks.push_back(rank); }
  const auto found = checked(ranks, {}, {tp});
  RC_ASSERT(!is_sound(found));
  const Problem first = found.front().problem;
  if (is_collective) {
    RC_ASSERT(first == Problem::collective_membership || first == Problem::collective_size ||
              first == Problem::collective_type || first == Problem::collective_order);
  } else {
    RC_ASSERT(first == Problem::unmatched_send || first == Problem::unmatched_receive ||
              first == Problem::message_size);
  }
}

TEST(JobCheck, the_same_collectives_in_another_order_are_found) {
  const auto a = collective(1, CollectiveType::all_reduce, 8);
  const auto b = collective(2, CollectiveType::all_reduce, 16);
  EXPECT_THAT(problems(checked({{a, b}, {b, a}})), ElementsAre(Problem::collective_order));
}

// Dependencies determine the order here: both ranks must run the collective of 8 bytes first.
TEST(JobCheck, dependencies_take_precedence_over_the_order_of_the_file) {
  const auto first = collective(1, CollectiveType::all_reduce, 8);
  const auto second = collective(2, CollectiveType::all_reduce, 16, "", {1});
  EXPECT_THAT(checked({{first, second}, {second, first}}), IsEmpty());
}

TEST(JobCheck, sizes_of_an_all_to_all_can_differ_and_are_reported) {
  const auto found = checked({{collective(1, CollectiveType::all_to_all, 8)},  //
                              {collective(1, CollectiveType::all_to_all, 16)}});
  EXPECT_THAT(problems(found), ElementsAre(Problem::collective_size));
  EXPECT_TRUE(is_sound(found));
}

TEST(JobCheck, members_of_a_group_without_a_list_are_the_ranks_that_use_it) {
  const auto call = collective(1, CollectiveType::all_reduce, 8, "tp");
  EXPECT_THAT(checked({{call}, {call}, {node(1)}}), IsEmpty());
  JobCheckOptions options;
  options.groups = {{"tp", {0, 1, 2}}};
  const auto found = checked({{call}, {call}, {node(1)}}, options);
  ASSERT_THAT(problems(found), ElementsAre(Problem::collective_membership));
  EXPECT_THAT(found[0].examples[0].message, HasSubstr("rank 2 calls only 0 of them"));
}

TEST(JobCheck, members_without_a_file_are_reported_unless_the_job_is_partial) {
  const auto call = collective(1, CollectiveType::all_reduce, 8, "tp");
  const std::vector<ProcessGroup> groups = {{"tp", {0, 1, 5}}};
  EXPECT_THAT(problems(checked({{call}, {call}}, {}, groups)), ElementsAre(Problem::group_members));
  JobCheckOptions partial;
  partial.partial = true;
  EXPECT_THAT(checked({{call}, {call}}, partial, groups), IsEmpty());
  EXPECT_THAT(checked({{message(1, true, 5, 0, 8)}, {node(1)}}, partial), IsEmpty());
  EXPECT_THAT(problems(checked({{message(1, true, 5, 0, 8)}, {node(1)}})), ElementsAre(Problem::unmatched_send));
}

// 100,000 members without a file, and 100,000 ranks that are not members. A search of the list for each rank, or all
// ranks in each message, would take 100,000 x 100,000 steps.
TEST(JobCheck, members_of_a_large_group_are_found_without_searching_it_for_each_rank) {
  constexpr std::uint64_t kRanks = 100'000;
  JobCheckOptions options;
  options.groups = {{"dp", {}}};
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) { options.groups[0].ranks.push_back(kRanks + rank); }
  JobCheck job(std::move(options));
  const Graph graph = graph_of({collective(1, CollectiveType::all_reduce, 8, "dp")});
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) { job.add(rank, graph); }
  const auto found = job.findings();
  ASSERT_THAT(problems(found), ElementsAre(Problem::group_members));
  EXPECT_EQ(found[0].count, 2 * kRanks);  // members without a file, and ranks that are not members
}

TEST(JobCheck, a_rank_without_a_file_is_found) {
  JobCheck job;
  job.add(0, graph_of({node(1)}));
  job.add(2, graph_of({node(1)}));
  const auto found = job.findings();
  ASSERT_THAT(problems(found), ElementsAre(Problem::missing_rank));
  EXPECT_EQ(found[0].examples[0].rank, 1U);
}

TEST(JobCheck, ranks_that_receive_before_they_send_deadlock) {
  const auto found = checked({{message(1, false, 1, 0, 8), message(2, true, 1, 0, 8, {1})},
                              {message(3, false, 0, 0, 8), message(4, true, 0, 0, 8, {3})}});
  ASSERT_THAT(problems(found), ElementsAre(Problem::deadlock));
  EXPECT_THAT(found[0].examples[0].message, HasSubstr("node 1 of rank 0"));
  EXPECT_THAT(found[0].examples[0].message, HasSubstr("node 4 of rank 1"));
}

// Two groups of the same ranks, called in opposite orders: each group matches, but together they deadlock.
TEST(JobCheck, groups_called_in_opposite_orders_deadlock) {
  const auto tp = [](std::uint64_t id, std::vector<std::uint64_t> after) {
    return collective(id, CollectiveType::all_reduce, 8, "tp", std::move(after));
  };
  const auto dp = [](std::uint64_t id, std::vector<std::uint64_t> after) {
    return collective(id, CollectiveType::all_reduce, 8, "dp", std::move(after));
  };
  EXPECT_THAT(checked({{tp(1, {}), dp(2, {1})}, {tp(1, {}), dp(2, {1})}}), IsEmpty());
  EXPECT_THAT(problems(checked({{tp(1, {}), dp(2, {1})}, {dp(1, {}), tp(2, {1})}})), ElementsAre(Problem::deadlock));
}

TEST(JobCheck, collectives_of_some_dimensions_are_not_compared) {
  NodeRecord a = collective(1, CollectiveType::all_reduce, 8);
  NodeRecord b = collective(1, CollectiveType::all_reduce, 16);
  const std::string some("\1\0", 2);
  const std::string all("\1\1", 2);
  for (NodeRecord* record : {&a, &b}) {
    record->attributes.push_back({keys::involved_dim, Value::view(ValueType::bool_list, some), {}, {}});
  }
  const auto found = checked({{a}, {b}});
  EXPECT_THAT(problems(found), ElementsAre(Problem::not_compared));
  EXPECT_TRUE(is_sound(found));
  for (NodeRecord* record : {&a, &b}) { record->attributes.back().value = Value::view(ValueType::bool_list, all); }
  EXPECT_THAT(problems(checked({{a}, {b}})), ElementsAre(Problem::collective_size));
}

}  // namespace
}  // namespace orrery::graph::job_check_test
