#include "orrery/campaign/incidents.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "orrery/core/random.hpp"

namespace orrery::campaign::incidents_test {
namespace {

constexpr double kDay = 86'400.0;

// Tables of exact Poisson limits: 95 % of 0: 0 to 3.689; of 10: 4.795 to 18.390; of 100: 81.36 to 121.63.
TEST(poisson_interval, agrees_with_tables) {
  EXPECT_NEAR(poisson_interval(0, 0.95).high, 3.6889, 1e-4);
  EXPECT_EQ(poisson_interval(0, 0.95).low, 0.0);
  EXPECT_NEAR(poisson_interval(10, 0.95).low, 4.7954, 1e-4);
  EXPECT_NEAR(poisson_interval(10, 0.95).high, 18.3904, 1e-4);
  EXPECT_NEAR(poisson_interval(100, 0.95).low, 81.364, 1e-3);
  EXPECT_NEAR(poisson_interval(100, 0.95).high, 121.627, 1e-3);
}

// Exact intervals cover at least their share, here 80 %.
TEST(poisson_interval, covers) {
  for (const double mean : {0.5, 3.0, 20.0, 200.0}) {
    RandomStream random(1);
    int covered = 0;
    for (int i = 0; i < 2000; ++i) {
      const auto interval = poisson_interval(poisson(random, mean), 0.8);
      covered += interval.low <= mean && mean <= interval.high ? 1 : 0;
    }
    EXPECT_GE(covered, 1560) << mean;  // 1,600 less more than two standard errors
  }
}

// Twice the rate: (1.96 + 0.842)^2 x 3 / 1 = 23.5 incidents.
TEST(incidents_to_tell, of_twice_the_rate) {
  EXPECT_NEAR(incidents_to_tell(2.0), 7.849 * 3.0, 0.01);
  EXPECT_GT(incidents_to_tell(1.1), 1600.0);
}

// 419 incidents in 54 days of 2,048 nodes: 3.79 per 1,000 node-days.
TEST(fit_incidents, of_as_many_as_llama3_had) {
  std::vector<Incident> incidents;
  for (int i = 0; i < 419; ++i) {
    incidents.push_back({Seconds((i + 0.5) / 419.0 * 54 * kDay), i % 3 == 0 ? "network" : "GPU", Seconds(600)});
  }
  const auto fit = fit_incidents(incidents, 16'384, Seconds(54 * kDay));
  EXPECT_NEAR(fit.all.rate, 3.79, 5e-3);
  EXPECT_LT(fit.all.low80, 3.79);
  EXPECT_GT(fit.all.high80, 3.79);
  EXPECT_LT(fit.all.low95, fit.all.low80);
  ASSERT_EQ(fit.causes.size(), 2U);
  EXPECT_EQ(fit.causes.front().cause, "GPU");
  EXPECT_EQ(fit.causes[0].count + fit.causes[1].count, 419);
  EXPECT_NEAR(*fit.variation, 0.0, 1e-9);  // at equal distances
  EXPECT_EQ(*fit.mean_downtime_s, 600.0);
  EXPECT_GT(fit.halves_p, 0.9);
}

TEST(fit_incidents, sees_a_rate_that_falls) {
  std::vector<Incident> incidents;
  for (int i = 0; i < 60; ++i) { incidents.push_back({Seconds(i * 0.1 * kDay), "", std::nullopt}); }
  for (int i = 0; i < 15; ++i) { incidents.push_back({Seconds((11 + i * 0.5) * kDay), "", std::nullopt}); }
  const auto fit = fit_incidents(incidents, 1024, Seconds(20 * kDay));
  EXPECT_LT(fit.halves_p, 1e-3);
  EXPECT_GT(fit.first_half_rate, 3.0 * fit.second_half_rate);
}

}  // namespace
}  // namespace orrery::campaign::incidents_test
