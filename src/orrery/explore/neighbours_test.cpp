// Plans one step away, against their definition.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/explore/neighbours.hpp"
#include "orrery/explore/space.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore {
namespace {

using parallel::Plan;
using parallel::Recompute;

// A mixture of 8 experts on 8 nodes of 8.
std::vector<Plan> mixture_space(std::int64_t seq) {
  auto model = parallel::test::llama(16, 1024, 16, 16, 4096, 4096);
  model.experts = {.count = 8, .active = 2, .ffn = 1024};
  const parallel::Job job{64, seq, hardware::Precision::bf16, parallel::Task::pretrain};
  return enumerate(model, job, parallel::test::cluster_of({8, 8}), {}, true);
}

std::vector<std::string> told(const std::vector<Neighbour>& found) {
  std::vector<std::string> texts;
  for (const auto& [axis, plan] : found) {
    if (axis == "tp") { texts.push_back("tp " + std::to_string(plan.tp)); }
    if (axis == "ep") { texts.push_back("ep " + std::to_string(plan.ep)); }
    if (axis == "vpp") { texts.push_back("vpp " + std::to_string(plan.vpp)); }
    if (axis == "cp") { texts.push_back("cp " + std::to_string(plan.cp)); }
    if (axis == "zero") { texts.push_back("zero " + std::to_string(plan.zero)); }
  }
  return texts;
}

// tp 2, pp 2, dp 16, ep 4, vpp 2: ep may be 2 or 8, vpp 1 (which is 1f1b) or 3 or 4.
TEST(Neighbours, are_the_nearest_values_of_each_axis_below_and_above) {
  Plan plan;
  plan.tp = 2;
  plan.pp = 2;
  plan.dp = 16;
  plan.ep = 4;
  plan.vpp = 2;
  plan.schedule = parallel::ScheduleKind::interleaved;
  plan.sequence_parallel = true;
  plan.zero = 1;
  const auto found = neighbours(mixture_space(4096), plan);
  EXPECT_THAT(told(found), testing::ElementsAre("tp 1", "tp 4", "ep 2", "ep 8", "vpp 1", "vpp 3", "zero 0", "zero 2"));
  EXPECT_EQ(found.front().plan.dp, 32);
  EXPECT_FALSE(found.front().plan.sequence_parallel);  // which follows from tp 1
}

// cp 2 of 8,192 tokens from cp 1, by the method that comes first.
TEST(Neighbours, of_cp_1_have_a_method) {
  Plan plan;
  plan.dp = 64;
  const auto found = neighbours(mixture_space(8192), plan);
  const auto cp = std::find_if(found.begin(), found.end(), [](const auto& one) { return one.axis == "cp"; });
  ASSERT_NE(cp, found.end());
  EXPECT_EQ(cp->plan.cp, 2);
  EXPECT_EQ(cp->plan.dp, 32);
  EXPECT_EQ(cp->plan.cp_method, workload::ContextMethod::ring);
}

TEST(Neighbours, of_every_plan_are_in_the_space_and_mutual) {
  const auto space = mixture_space(8192);
  for (std::size_t i = 0; i < space.size(); i += space.size() / 40) {
    for (const auto& near : neighbours(space, space[i])) {
      ASSERT_NE(std::find(space.begin(), space.end(), near.plan), space.end());
      ASSERT_FALSE(near.plan == space[i]);
      const auto back = neighbours(space, near.plan);
      const bool mutual = std::any_of(back.begin(), back.end(), [&](const auto& one) { return one.axis == near.axis; });
      ASSERT_TRUE(mutual) << near.axis;
    }
  }
}

TEST(Neighbours, of_a_space_of_one_plan_are_none) {
  EXPECT_TRUE(neighbours({Plan{}}, Plan{}).empty());
  EXPECT_TRUE(neighbours({}, Plan{}).empty());
}

}  // namespace
}  // namespace orrery::explore
