#include "orrery/profile/repeated_steps.hpp"

#include <random>

#include <gtest/gtest.h>

#include "orrery/profile/job_plan.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/test_profiles.hpp"

namespace orrery::profile::repeated_steps_test {

using Sequence = std::vector<std::uint32_t>;

Sequence repeated(const Sequence& step, std::size_t times, std::size_t rest = 0) {
  Sequence all;
  for (std::size_t i = 0; i < times; ++i) { all.insert(all.end(), step.begin(), step.end()); }
  all.insert(all.end(), step.begin(), step.begin() + static_cast<std::ptrdiff_t>(rest));
  return all;
}

TEST(Period, is_that_of_the_step_and_not_of_its_layers) {
  // An embedding, four equal layers, a loss: 1 (2 3) (2 3) (2 3) (2 3) 4 is one step of ten.
  EXPECT_EQ(period_of(repeated({1, 2, 3, 2, 3, 2, 3, 2, 3, 4}, 5, 3)), 10U);
}

TEST(Period, needs_three_repetitions) {
  EXPECT_EQ(period_of(repeated({1, 2, 3, 4}, 2)), 0U);
  EXPECT_EQ(period_of(repeated({1, 2, 3, 4}, 3)), 4U);
  EXPECT_EQ(period_of({}), 0U);
}

TEST(Period, single_differences_do_not_hide_it) {
  Sequence sequence = repeated({1, 2, 3, 4, 5, 6, 7, 8}, 20);
  sequence[37] = 99;
  EXPECT_EQ(period_of(sequence), 8U);
}

TEST(Period, launches_without_a_pattern_have_none) {
  std::mt19937 random(7);
  Sequence sequence(400);
  for (std::uint32_t& one : sequence) { one = static_cast<std::uint32_t>(random() % 20); }
  EXPECT_EQ(period_of(sequence), 0U);
}

// The made job launches seven operations a step. Without its annotations, a step still begins at each seventh launch.
TEST(RepeatedSteps, of_a_job_without_annotations_have_the_launches_of_its_steps) {
  std::string text = MadeJob(2, 5, 3).profiles()[0];
  for (std::size_t at = text.find("ProfilerStep#"); at != std::string::npos; at = text.find("ProfilerStep#")) {
    text.replace(at, 13, "MyOwnMarker#");
  }
  const auto profile = read_kineto_bytes(text, "a.json");
  ASSERT_TRUE(profile);
  const auto job = job_plan({&*profile});
  ASSERT_TRUE(job) << job.error().text();
  const RankPlan& plan = job->ranks.front();
  EXPECT_TRUE(plan.guessed_steps);
  std::size_t begins = 0;
  for (const PlannedNode& node : plan.nodes) { begins += node.kind == NodeKind::step_begin ? 1 : 0; }
  EXPECT_EQ(begins, 4U);  // the fifth has no launch after it that would end it
  EXPECT_EQ(job->notes.back(), "rank 0: no ProfilerStep; steps are one period of its repeated launches");
}

}  // namespace orrery::profile::repeated_steps_test
