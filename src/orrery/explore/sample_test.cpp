#include "orrery/explore/sample.hpp"

#include <map>

#include <gtest/gtest.h>

#include "orrery/explore/test_walks.hpp"

namespace orrery::explore::sample_test {
namespace {

// 12 plans in families of 3; the last plan of each family represents 2 points: 16 points.
test::Listed sixteen_points() {
  std::vector<parallel::Plan> plans;
  for (const std::int64_t tp : {1, 2, 4, 8}) {
    for (const int zero : {0, 1, 2}) {
      parallel::Plan plan;
      plan.tp = tp;
      plan.zero = zero;
      plans.push_back(plan);
    }
  }
  auto list = test::listed(plans, 8);
  for (auto& members : list.members) { members.back().points = 2; }
  for (auto& family : list.families) { ++family.points; }
  return list;
}

TEST(Sample, all_points_are_sampled_if_the_sample_is_large_enough) {
  const auto list = sixteen_points();
  test::ListWalk walk(list);
  const SpaceSample all = sample_points(walk, 100, 1);
  EXPECT_EQ(all.points, 16);
  ASSERT_EQ(all.sampled.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(all.sampled[i].number, static_cast<std::int64_t>(i));
    EXPECT_EQ(all.sampled[i].member.point.plan.tp, std::int64_t{1} << (i / 4));
    EXPECT_EQ(all.sampled[i].member.point.plan.zero, std::min(static_cast<int>(i % 4), 2));
  }
}

TEST(Sample, the_same_seed_samples_the_same_points) {
  const auto list = sixteen_points();
  test::ListWalk walk(list);
  const auto numbers = [&](std::uint64_t seed) {
    std::vector<std::int64_t> all;
    for (const auto& one : sample_points(walk, 5, seed).sampled) { all.push_back(one.number); }
    return all;
  };
  EXPECT_EQ(numbers(7), numbers(7));
  EXPECT_NE(numbers(7), numbers(8));
  EXPECT_EQ(numbers(7).size(), 5U);
}

// In 4,000 samples of 4 of 16 points each point is expected 1,000 times; the tolerance is five standard deviations of
// 27.
TEST(Sample, every_point_is_equally_likely) {
  const auto list = sixteen_points();
  test::ListWalk walk(list);
  std::map<std::int64_t, int> times;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    for (const auto& one : sample_points(walk, 4, seed).sampled) { ++times[one.number]; }
  }
  ASSERT_EQ(times.size(), 16U);
  for (const auto& [number, seen] : times) { EXPECT_NEAR(seen, 1000, 137) << number; }
}

}  // namespace
}  // namespace orrery::explore::sample_test
