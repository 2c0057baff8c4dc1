#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"

namespace orrery::api {
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

// What a search found is launched as it was found: nothing is settled again, and the time is the same to the last
// digit.
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
}  // namespace orrery::api
