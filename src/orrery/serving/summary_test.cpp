#include "orrery/serving/summary.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::serving::summary_test {
namespace {

// As a reader would do it: sort, and take the nearest ranks.
results::Distribution sorted_distribution(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double p) {
    const double rank = std::ceil(p * static_cast<double>(values.size()));
    return values[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
  };
  results::Distribution d;
  for (const double value : values) { d.mean += value / static_cast<double>(values.size()); }
  d.p50 = at(0.5);
  d.p90 = at(0.9);
  d.p95 = at(0.95);
  d.p99 = at(0.99);
  d.max = values.back();
  return d;
}

RC_GTEST_PROP(distribution_of, has_the_nearest_ranks_of_sorted_values, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 400);
  const auto whole = *rc::gen::container<std::vector<int>>(size, rc::gen::inRange(0, 50));  // many are equal
  const std::vector<double> values(whole.begin(), whole.end());
  const auto found = distribution_of(values), expected = sorted_distribution(values);
  RC_ASSERT(found.p50 == expected.p50);
  RC_ASSERT(found.p90 == expected.p90);
  RC_ASSERT(found.p95 == expected.p95);
  RC_ASSERT(found.p99 == expected.p99);
  RC_ASSERT(found.max == expected.max);
  RC_ASSERT(std::abs(found.mean - expected.mean) <= 1e-12 * (1.0 + expected.mean));
}

TEST(distribution_of, is_empty_without_values) { EXPECT_EQ(distribution_of({}).max, 0.0); }

}  // namespace
}  // namespace orrery::serving::summary_test
