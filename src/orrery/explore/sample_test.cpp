#include "orrery/explore/sample.hpp"

#include <map>

#include <gtest/gtest.h>

#include "orrery/explore/test_walks.hpp"

namespace orrery::explore {
namespace {

// 12 plans in families of 3, the last of each standing for 2 points: 16 points.
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

TEST(Sample, all_points_are_drawn_where_as_many_are_asked_for) {
  const auto list = sixteen_points();
  test::ListWalk walk(list);
  const Draw all = draw(walk, 100, 1);
  EXPECT_EQ(all.points, 16);
  ASSERT_EQ(all.drawn.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(all.drawn[i].number, static_cast<std::int64_t>(i));
    EXPECT_EQ(all.drawn[i].member.point.plan.tp, std::int64_t{1} << (i / 4));
    EXPECT_EQ(all.drawn[i].member.point.plan.zero, std::min(static_cast<int>(i % 4), 2));
  }
}

TEST(Sample, the_same_seed_draws_the_same_points) {
  const auto list = sixteen_points();
  test::ListWalk walk(list);
  const auto numbers = [&](std::uint64_t seed) {
    std::vector<std::int64_t> all;
    for (const auto& one : draw(walk, 5, seed).drawn) { all.push_back(one.number); }
    return all;
  };
  EXPECT_EQ(numbers(7), numbers(7));
  EXPECT_NE(numbers(7), numbers(8));
  EXPECT_EQ(numbers(7).size(), 5U);
}

// Of 4,000 draws of 4 of 16 points each point is in a quarter: 1,000 times, five standard deviations (27 each) apart at
// most.
TEST(Sample, every_point_is_as_likely) {
  const auto list = sixteen_points();
  test::ListWalk walk(list);
  std::map<std::int64_t, int> times;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    for (const auto& one : draw(walk, 4, seed).drawn) { ++times[one.number]; }
  }
  ASSERT_EQ(times.size(), 16U);
  for (const auto& [number, seen] : times) { EXPECT_NEAR(seen, 1000, 137) << number; }
}

}  // namespace
}  // namespace orrery::explore
