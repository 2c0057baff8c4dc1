// Where nothing fits: the plan that is named has the lowest memory of all, and the changes that are named do.
#include "orrery/api/nearest.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/explore/space_walk.hpp"

namespace orrery::api::nearest_test {
namespace {

using ::testing::HasSubstr;

PlanRequest too_large() {
  PlanRequest request;
  request.job.model = "llama-3.1-70b";
  request.job.cluster = "dgx-h100";
  request.job.devices = 8;
  request.job.global_batch = 64;
  request.job.seq = 8192;
  return request;
}

class Nearest : public ::testing::Test {
 protected:
  std::string data_ = ORRERY_SOURCE_DATA_DIR;
  hardware::Catalogue catalogue_{data_};
  Orrery orrery_{data_};
};

// Llama 2 13B on 4 A100 of 40 GB: with fsdp2, 8-bit moments make it fit; Megatron-Core has none, so they are no answer.
TEST_F(Nearest, moments_of_8_bits_are_proposed_where_the_stack_has_them) {
  PlanRequest request = too_large();
  request.job.model = "llama-2-13b";
  request.job.cluster = "dgx-a100-40gb";
  request.job.devices = 4;
  request.job.seq = 4096;
  for (const auto& [stack, has] : {std::pair{"fsdp2", true}, std::pair{"megatron-core", false}, std::pair{"", false}}) {
    request.job.stack = stack;
    const auto nearest = nearest_plan(data_, catalogue_, request);
    ASSERT_TRUE(nearest) << stack;
    const auto proposed = std::any_of(nearest->changes.begin(), nearest->changes.end(),
                                      [](const auto& change) { return change.flags == "--optimizer adam8bit"; });
    EXPECT_EQ(proposed, has) << stack;
  }
}

TEST_F(Nearest, plan_has_the_lowest_memory_of_all) {
  for (const bool fixed : {false, true}) {
    if (orrery::test::kSanitizers && !fixed) { continue; }
    PlanRequest request = too_large();
    if (fixed) {
      request.job.zero = 1;
      request.job.recompute = parallel::Recompute::selective;
    }
    const auto nearest = nearest_plan(data_, catalogue_, request);
    ASSERT_TRUE(nearest);
    const auto problem = read_problem(data_, catalogue_, request).value();
    const auto space = space_of(request, problem).value();
    const Inputs& inputs = problem.inputs;
    estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, space.job());
    Bytes least = infinite<Bytes>();
    explore::SpaceWalk walk(space), of_members(space);
    walk.families([&](const explore::Family& family) {
      of_members.members(family, [&](const explore::Member& member) {
        if (member.verdict == explore::Verdict::possible) {
          least = min(least, estimator.memory(member.point.plan).need);
        }
      });
      return true;
    });
    EXPECT_EQ(nearest->need, least);
    EXPECT_GT(nearest->need, nearest->capacity);
    EXPECT_FALSE(nearest->estimate.feasible);
  }
}

TEST_F(Nearest, changes_make_a_plan_fit_and_smaller_ones_do_not) {
  const PlanRequest request = too_large();
  const auto answer = orrery_.plan(request).value();
  ASSERT_TRUE(answer.nearest);
  EXPECT_EQ(answer.space.rejected_memory, answer.space.points);
  ASSERT_FALSE(answer.nearest->changes.empty());
  PlanRequest more = request;
  const std::string devices = answer.nearest->changes.front().flags;
  ASSERT_EQ(devices.find("--devices "), 0U);
  more.job.devices = std::stoll(devices.substr(10));
  EXPECT_FALSE(orrery_.plan(more).value().best.empty());
  more.job.devices = *more.job.devices / 2;
  EXPECT_TRUE(orrery_.plan(more).value().best.empty());
  EXPECT_THAT(answer.nothing_fits, HasSubstr("a plan fits with " + devices));
}

TEST_F(Nearest, a_flag_that_is_in_the_way_is_named) {
  PlanRequest request = too_large();
  request.job.devices = 64;
  request.job.zero = 0;
  request.job.tp = request.job.pp = 1;
  const auto answer = orrery_.plan(request).value();
  ASSERT_TRUE(answer.nearest);
  EXPECT_THAT(answer.nothing_fits, HasSubstr("another --zero"));
  request.job.zero.reset();
  EXPECT_FALSE(orrery_.plan(request).value().best.empty());
}

// Modules are part of selective recompute: full recompute is no plan of the space.
TEST_F(Nearest, is_named_with_modules_of_recompute) {
  PlanRequest request = too_large();
  request.job.recompute_modules.emplace().norms = true;
  const auto nearest = nearest_plan(data_, catalogue_, request);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->estimate.plan.text("recompute"), "selective");
}

TEST_F(Nearest, is_absent_where_a_plan_fits) {
  PlanRequest request = too_large();
  request.job.devices = 64;
  EXPECT_FALSE(orrery_.plan(request).value().nearest);
  EXPECT_FALSE(nearest_plan(data_, catalogue_, request));
}

}  // namespace
}  // namespace orrery::api::nearest_test
