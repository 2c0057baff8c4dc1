#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"

namespace orrery::api::launch_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

estimate::Request small_job() {
  estimate::Request request;
  request.model = "llama-3.1-8b";
  request.cluster = "dgx-h100";
  request.devices = 64;
  request.global_batch = 128;
  request.seq = 8192;
  return request;
}

TEST(ApiLaunch, a_launch_comes_with_the_estimate_of_its_plan) {
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  auto request = small_job();
  request.tp = 2;
  const auto launched = orrery.launch(request, launch::Tool::megatron);
  const auto estimated = orrery.estimate(request);
  ASSERT_TRUE(launched.has_value() && estimated.has_value());
  EXPECT_EQ(launched->answer.estimate.step_time, estimated->estimate.step_time);
  EXPECT_EQ(launched->answer.chosen, estimated->chosen);
  EXPECT_THAT(launched->launch.text, HasSubstr("--tensor-model-parallel-size 2\n"));
  EXPECT_THAT(launched->launch.text, HasSubstr("--nnodes 8\n"));
}

// A search result is launched as found: no default is chosen again, and the time is bit-identical.
TEST(ApiLaunch, a_plan_that_a_search_found_stands_again_as_a_request) {
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  PlanRequest search;
  search.job = small_job();
  search.top = 5;
  const auto found = orrery.plan(search);
  ASSERT_TRUE(found.has_value());
  ASSERT_FALSE(found->best.empty());
  for (const auto& best : found->best) {
    const auto launched = orrery.launch(request_of(small_job(), best.plan), launch::Tool::torchtitan);
    ASSERT_TRUE(launched.has_value());
    EXPECT_EQ(launched->answer.estimate.step_time, best.step_time);
    EXPECT_EQ(launched->answer.estimate.memory.total(), best.memory.total());
    EXPECT_THAT(launched->answer.chosen, IsEmpty());
  }
}

// With every group pinned, offload, and a batch that the plan determines: all of it is in the request.
TEST(ApiLaunch, a_plan_of_a_space_file_stands_again_as_a_request) {
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  PlanRequest search;
  const auto space = explore::read_space_file(std::string(ORRERY_SOURCE_DATA_DIR) + "/../examples/spaces/p-b.yaml");
  ASSERT_TRUE(space.has_value()) << space.error().text();
  search.space = *space;
  search.job.model = "gpt3-175b";
  search.job.cluster = "h100-80g-nvl8-ib";
  search.job.devices = 4096;
  search.top = 20;
  const auto found = orrery.plan(search);
  ASSERT_TRUE(found.has_value()) << found.error().text();
  ASSERT_EQ(found->best.size(), 20U);
  for (const auto& best : found->best) {
    EXPECT_THAT(best.plan.text("placement"), HasSubstr("="));
    const auto again = orrery.estimate(request_of(search.job, best));
    ASSERT_TRUE(again.has_value()) << again.error().text();
    EXPECT_EQ(again->estimate.step_time, best.step_time);
    EXPECT_EQ(again->estimate.memory.total(), best.memory.total());
    EXPECT_EQ(again->estimate.plan.text("placement"), best.plan.text("placement"));
    EXPECT_EQ(again->estimate.global_batch, best.global_batch);
    EXPECT_THAT(again->chosen, IsEmpty());
  }
}

TEST(ApiLaunch, inference_has_nothing_to_launch) {
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  auto request = small_job();
  request.global_batch.reset();
  request.seq.reset();
  request.task = parallel::Task::inference;
  request.prompt = 128;
  request.generate = 16;
  request.batch = 64;
  const auto launched = orrery.launch(request, launch::Tool::nemo);
  ASSERT_FALSE(launched.has_value());
  EXPECT_EQ(launched.error().diagnostics.front().place.path, "--task");
}

}  // namespace
}  // namespace orrery::api::launch_test
