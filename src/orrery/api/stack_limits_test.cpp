// Searches over what the software of a stack has.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"

namespace orrery::api::stack_limits_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

PlanRequest wide_search(const char* stack) {
  PlanRequest request;
  request.job.model = "llama-3.2-1b";
  request.job.cluster = "dgx-h100";
  request.job.devices = 4;
  request.job.global_batch = 8;
  request.job.seq = 2048;
  request.job.stack = stack;
  request.wide = true;
  request.variants = true;
  request.top = 100'000;
  request.threads = 1;
  return request;
}

results::PlanSearch found(const PlanRequest& request) {
  auto answer = Orrery(ORRERY_SOURCE_DATA_DIR).plan(request);
  EXPECT_TRUE(answer) << answer.error().text();
  return answer.value_or(results::PlanSearch{});
}

TEST(StackLimits, plan_finds_only_what_the_stack_has) {
  PlanRequest request = wide_search("fsdp");
  request.job.cp = request.job.pp = 1;
  request.job.recompute = parallel::Recompute::full;
  const auto search = found(request);
  ASSERT_GT(search.best.size(), 10U);
  for (const auto& one : search.best) {
    EXPECT_EQ(one.plan.text("tp_overlap"), "none");
    EXPECT_NE(one.plan.number("zero"), 1);
  }
  EXPECT_THAT(search.not_searched, Contains(HasSubstr("zero 1, which fsdp does not have (--stack ideal)")));
}

// A default stack is no decision, and ideal has everything.
TEST(StackLimits, plan_finds_everything_if_no_stack_is_named) {
  PlanRequest request = wide_search("");
  request.job.pp = 2;
  request.job.tp = 2;
  request.job.micro_batch = 1;
  request.job.recompute = parallel::Recompute::none;
  request.job.offload = parallel::Offload{};
  const auto open = found(request);
  request.job.stack = "megatron-core";
  const auto named = found(request);
  EXPECT_GT(open.space.points, named.space.points);
  EXPECT_THAT(open.not_searched, Not(Contains(HasSubstr("does not have"))));
  EXPECT_THAT(named.not_searched, Contains(HasSubstr("schedule gpipe, zero-bubble, dualpipe, which megatron-core")));
}

TEST(StackLimits, values_that_a_flag_gives_are_limited_too) {
  PlanRequest request = wide_search("hai-llm");
  request.job.tp = 1;
  request.job.recompute = parallel::Recompute::none;
  config::add(request.values, "zero", config::sequence_node({config::integer_node(1), config::integer_node(3)}));
  for (const auto& one : found(request).best) { EXPECT_NE(one.plan.number("zero"), 3); }
}

}  // namespace
}  // namespace orrery::api::stack_limits_test
