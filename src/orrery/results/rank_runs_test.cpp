// Values by rank, in runs.
#include "orrery/results/rank_runs.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/random.hpp"

namespace orrery::results::rank_runs_test {
namespace {

TEST(RankRuns, are_a_list_with_one_value_for_each_rank) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed);
    RankRuns<int> runs;
    std::vector<int> list;
    for (int i = 0; i < 30; ++i) {
      const auto count = static_cast<std::uint64_t>(random.below(4));
      const int value = static_cast<int>(random.below(3));
      runs.add(count, value);
      list.insert(list.end(), count, value);
    }
    ASSERT_EQ(runs.size(), list.size());
    ASSERT_EQ(std::vector<int>(runs.begin(), runs.end()), list);
    for (std::size_t rank = 0; rank < list.size(); ++rank) { ASSERT_EQ(runs[rank], list[rank]); }
    RankRuns<int> single;
    for (const int value : list) { single.push_back(value); }
    ASSERT_EQ(single, runs);  // whatever they were made of
    single.push_back(list.empty() ? 0 : list.back());
    ASSERT_NE(single, runs);
  }
}

TEST(RankRuns, equal_neighbours_are_one_run) {
  RankRuns<int> runs;
  runs.add(1'000'000'000'000, 7);
  runs.add(1, 7);
  runs.add(2, 8);
  ASSERT_EQ(runs.runs().size(), 2U);
  EXPECT_EQ(runs[1'000'000'000'000], 7);
  EXPECT_EQ(runs[1'000'000'000'001], 8);
  EXPECT_EQ(runs.size(), 1'000'000'000'003U);
}

}  // namespace
}  // namespace orrery::results::rank_runs_test
