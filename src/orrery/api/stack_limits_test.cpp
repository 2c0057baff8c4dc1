// Searches over what the software of a stack has.
#include <algorithm>
#include <string>

#include <fmt/format.h>
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

TEST(StackLimits, values_that_the_stack_does_not_have_are_refused) {
  PlanRequest request = wide_search("hai-llm");
  config::add(request.values, "zero", config::sequence_node({config::integer_node(2), config::integer_node(3)}));
  const auto answer = Orrery(ORRERY_SOURCE_DATA_DIR).plan(request);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().text(), HasSubstr("--zero: hai-llm does not have 2, 3"));
}

explore::SpaceFile with_schedules(const char* schedules) {
  const auto root =
      config::parse_yaml(fmt::format("axes: {{tp: [1], pp: [4], zero: [1], schedule: {}}}", schedules), "s");
  EXPECT_TRUE(root);
  auto file = explore::space_of(*root);
  EXPECT_TRUE(file) << file.error().text();
  return *file;
}

TEST(StackLimits, plan_names_what_the_stack_takes_out_of_a_space_file) {
  PlanRequest request = wide_search("hai-llm");
  request.job.global_batch = 16;
  request.space = with_schedules("[gpipe, 1f1b]");
  const auto search = found(request);
  ASSERT_FALSE(search.best.empty());
  for (const auto& one : search.best) { EXPECT_EQ(one.plan.text("schedule"), "1f1b"); }
  EXPECT_THAT(search.not_searched,
              testing::ElementsAre(HasSubstr("schedule gpipe, interleaved, which hai-llm does not have")));
}

TEST(StackLimits, a_space_file_without_anything_that_the_stack_has_is_refused) {
  PlanRequest request = wide_search("megatron-core");
  request.space = with_schedules("[gpipe, zero-bubble]");
  const auto answer = Orrery(ORRERY_SOURCE_DATA_DIR).plan(request);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().text(),
              HasSubstr("--stack: no plan of the search is left: megatron-core does not have schedule "));
}

// DeepSeek-V3 as it was trained (arXiv 2412.19437, section 3.2): its set of recomputed modules is the one of the wide
// space with which DualPipe fits, so the search finds it.
TEST(StackLimits, the_wide_space_has_the_published_recompute_of_deepseek_v3) {
  PlanRequest request = wide_search("hai-llm");
  request.job.model = "deepseek-v3";
  request.job.cluster = "hgx-h800";
  request.job.devices = 2048;
  request.job.global_batch = 15'360;
  request.job.seq = 4096;
  request.job.precision = hardware::Precision::fp8;
  request.job.tp = request.job.cp = 1;
  request.job.pp = 16;
  request.job.ep = 64;
  request.job.zero = 1;
  request.job.schedule = parallel::ScheduleKind::dualpipe;
  request.job.offload = parallel::Offload{};
  const auto search = found(request);
  ASSERT_FALSE(search.best.empty());
  EXPECT_EQ(search.best.front().plan.text("recompute_modules"), "layernorm,mla_up_proj,act,moe_act");
}

}  // namespace
}  // namespace orrery::api::stack_limits_test
