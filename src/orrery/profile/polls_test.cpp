#include "orrery/profile/polls.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/rank_plan.hpp"

namespace orrery::profile::polls_test {

// Queries of a thread: `count` of 1 us, every `every` us from 20 us on.
struct Queries {
  int count = 11, every = 20;
  int thread = 9;              // 9 is the thread that launches
  int operator_before = 1000;  // an operator of 2 us is called 5 us before that query
};

// A kernel from 10 us to `end`, queries whether it has ended, and the launch of a second kernel after the last one.
Result<Profile> polling(const Queries& queries, int end = 210) {
  std::string text = fmt::format(R"({{"traceEvents":[
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":2,"dur":3,"args":{{"correlation":1}}}},
{{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":{},"args":{{"device":0,"stream":7,"correlation":1}}}})",
                                 end - 10);
  for (int i = 0; i < queries.count; ++i) {
    const int start = 20 + queries.every * i;
    if (i == queries.operator_before) {
      text += fmt::format(R"(,
{{"ph":"X","cat":"cpu_op","name":"aten::add","pid":9,"tid":9,"ts":{},"dur":2,"args":{{"External id":5}}}})",
                          start - 5);
    }
    text += fmt::format(R"(,
{{"ph":"X","cat":"cuda_runtime","name":"cudaEventQuery","pid":9,"tid":{},"ts":{},"dur":1,"args":{{"correlation":{}}}}})",
                        queries.thread, start, 10 + i);
  }
  const int launch = 20 + queries.every * queries.count;
  text += fmt::format(R"(,
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":{},"dur":3,"args":{{"correlation":2}}}},
{{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":{},"dur":5,"args":{{"device":0,"stream":7,"correlation":2}}}}]}})",
                      launch, std::max(launch + 8, end + 2));
  return read_kineto_bytes(text, "a.json");
}

// Nothing waits; `end` as in polling().
void expect_no_wait(const Queries& queries, int end = 210) {
  const auto profile = polling(queries, end);
  ASSERT_TRUE(profile) << profile.error().text();
  const RankPlan plan = plan_of(*profile);
  EXPECT_EQ(plan.counts.polls, 0U);
  EXPECT_EQ(plan.counts.blocked_ns, 0);
}

// Ten queries: the last one, from 200 to 201 us, comes before the kernel's end; eleven: from 220 us, after it.
TEST(Polls, a_row_of_queries_that_ends_with_the_kernel_waits_for_it) {
  const auto profile = polling({});
  ASSERT_TRUE(profile) << profile.error().text();
  const RankPlan plan = plan_of(*profile);
  EXPECT_EQ(plan.counts.polls, 1U);
  // From the end of the call's own cost to 221 us; all of it has a cause.
  EXPECT_GT(plan.counts.blocked_ns, 150'000);
  EXPECT_EQ(plan.counts.blocked_with_cause_ns, plan.counts.blocked_ns);
}

// The row returns after the kernel, by as much as was recorded: 11 us from 210 to 221.
TEST(Polls, a_row_of_queries_follows_the_kernel_when_that_moves) {
  const auto profile = polling({});
  ASSERT_TRUE(profile) << profile.error().text();
  const RankPlan plan = plan_of(*profile);
  std::size_t waits = 0;
  for (const PlannedNode& node : plan.nodes) {
    for (const Dependency& dependency : node.deps) {
      if (dependency.cause != Cause::sync) { continue; }
      ++waits;
      EXPECT_EQ(node.kind, NodeKind::return_);
      EXPECT_EQ(profile->name(*plan.nodes[dependency.node].event), "a");
      EXPECT_EQ(dependency.lag, 11'000);
    }
  }
  EXPECT_EQ(waits, 1U);
}

TEST(Polls, queries_that_end_before_the_kernel_are_no_wait) { expect_no_wait({.count = 6}); }

// The last query of twelve returns at 241 us, 31 us after the kernel.
TEST(Polls, queries_that_go_on_after_the_kernel_are_no_wait) { expect_no_wait({.count = 12}); }

// Nine queries end before the kernel, two are no row.
TEST(Polls, a_row_ends_where_the_thread_does_something_else) { expect_no_wait({.operator_before = 9}); }

TEST(Polls, a_thread_that_launches_nothing_does_not_wait) { expect_no_wait({.thread = 10}); }

// Three queries, at 20, 120 and 220 us.
TEST(Polls, few_queries_are_no_row) { expect_no_wait({.count = 3, .every = 100}); }

// Five queries from 20 to 53 us around the end of a kernel at 45 us.
TEST(Polls, a_short_row_is_work_of_the_thread) { expect_no_wait({.count = 5, .every = 8}, 45); }

}  // namespace orrery::profile::polls_test
