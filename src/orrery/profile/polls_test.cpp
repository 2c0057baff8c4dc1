#include "orrery/profile/polls.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/rank_plan.hpp"

namespace orrery::profile::polls_test {

// A kernel of 200 us from 10 us on, and a thread that asks every 20 us from 20 us on whether it has ended; then a
// second kernel is launched.
Result<Profile> polling(int queries) {
  std::string text = R"({"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":2,"dur":3,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":200,"args":{"device":0,"stream":7,"correlation":1}})";
  for (int i = 0; i < queries; ++i) {
    text += fmt::format(R"(,
{{"ph":"X","cat":"cuda_runtime","name":"cudaEventQuery","pid":9,"tid":9,"ts":{},"dur":1,"args":{{"correlation":{}}}}})",
                        20 + 20 * i, 10 + i);
  }
  const int launch = 20 + 20 * queries;
  text += fmt::format(R"(,
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":{},"dur":3,"args":{{"correlation":2}}}},
{{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":{},"dur":5,"args":{{"device":0,"stream":7,"correlation":2}}}}]}})",
                      launch, std::max(launch + 8, 212));
  return read_kineto_bytes(text, "a.json");
}

// Ten queries: the last one, from 200 to 201 us, comes before the kernel's end; eleven: from 220 us, after it.
TEST(Polls, a_row_of_queries_that_ends_with_the_kernel_waits_for_it) {
  const auto profile = polling(11);
  ASSERT_TRUE(profile) << profile.error().text();
  const RankPlan plan = plan_of(*profile);
  EXPECT_EQ(plan.counts.polls, 1U);
  // From the end of the call's own cost to 221 us; all of it has a cause.
  EXPECT_GT(plan.counts.blocked_ns, 150'000);
  EXPECT_EQ(plan.counts.blocked_with_cause_ns, plan.counts.blocked_ns);
}

TEST(Polls, queries_that_end_before_the_kernel_are_no_wait) {
  const auto profile = polling(6);
  ASSERT_TRUE(profile) << profile.error().text();
  const RankPlan plan = plan_of(*profile);
  EXPECT_EQ(plan.counts.polls, 0U);
  EXPECT_EQ(plan.counts.blocked_ns, 0);
}

}  // namespace orrery::profile::polls_test
