#include "orrery/validate/statistics.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::validate::statistics_test {
namespace {

using results::Prediction;

Prediction row(std::optional<double> measured, std::optional<double> predicted, bool feasible = true) {
  Prediction prediction;
  prediction.measured_s = measured;
  prediction.predicted_s = predicted;
  prediction.feasible = feasible;
  return prediction;
}

results::FamilyScore scored(const std::vector<Prediction>& rows) {
  std::vector<const Prediction*> pointers;
  for (const auto& prediction : rows) { pointers.push_back(&prediction); }
  return score("training", "f", pointers);
}

// Errors -10 %, +30 %, -20 %, 0 %: |e| sorted 0, 0.1, 0.2, 0.3.
//   mape = 0.6 / 4 = 0.15, bias = 0 / 4 = 0, median = (0.1 + 0.2) / 2 = 0.15
//   p90: ceil(0.9 x 4) = 4th smallest = 0.3
TEST(Statistics, of_four_rows_by_hand) {
  const auto s = scored({row(10, 9), row(10, 13), row(10, 8), row(10, 10)});
  EXPECT_EQ(s.kind, "training");
  EXPECT_EQ(s.family, "f");
  EXPECT_EQ(s.scored, 4);
  EXPECT_NEAR(s.mape, 0.15, 1e-15);
  EXPECT_NEAR(s.bias, 0.0, 1e-15);
  EXPECT_NEAR(s.median_ape, 0.15, 1e-15);
  EXPECT_NEAR(s.p90_ape, 0.3, 1e-15);
  EXPECT_NEAR(s.max_ape, 0.3, 1e-15);
}

Prediction served(const char* id, const char* group, const char* metric, double measured, double predicted) {
  Prediction prediction = row(measured, predicted);
  prediction.id = id;
  prediction.group = group;
  prediction.metric = metric;
  return prediction;
}

// TTFT: |e| 10, 20, 50 and 60 %, median 35 %; the sweep of three rows weighs as much as the one row, so half of all
// weight lies at the largest of the sweep, ln 1.5. The p50 of a row counts, not its mean; a row without a group does
// not.
TEST(Statistics, a_configuration_with_a_load_counts_once_in_serving_scores) {
  const auto scores = serving_scores({
      served("a", "sweep 1", "ttft_p50_ms", 10, 11),
      served("b", "sweep 1", "ttft_p50_ms", 10, 12),
      served("c", "sweep 1", "ttft_mean_ms", 10, 90),
      served("c", "sweep 1", "ttft_p50_ms", 10, 15),
      served("d", "other 4", "ttft_mean_ms", 10, 16),
      served("e", "", "output_tokens_per_s", 10, 16),
      served("e", "other 4", "ttft_p99_ms", 10, 20),
  });
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].figure, "TTFT");
  EXPECT_EQ(scores[0].rows, 4);
  EXPECT_EQ(scores[0].groups, 2);
  EXPECT_NEAR(scores[0].median_ape, 0.35, 1e-12);
  EXPECT_NEAR(scores[0].grouped_log, std::log(1.5), 1e-12);
}

// Measured 100, predicted 101 .. 110: |e| = 1 % .. 10 %. The median is the mean of the 5th and 6th, 5.5 %; the 90th
// percentile the 9th, 9 %. With an 11th row of 11 %: median the 6th; ceil(9.9) = 10th.
TEST(Statistics, the_ninetieth_percentile_is_the_nearest_rank) {
  std::vector<Prediction> rows;
  for (int i = 1; i <= 10; ++i) { rows.push_back(row(100, 100 + i)); }
  auto s = scored(rows);
  EXPECT_NEAR(s.median_ape, 0.055, 1e-12);
  EXPECT_NEAR(s.p90_ape, 0.09, 1e-12);
  EXPECT_NEAR(s.max_ape, 0.10, 1e-12);
  EXPECT_NEAR(s.bias, 0.055, 1e-12);
  rows.push_back(row(100, 111));
  s = scored(rows);
  EXPECT_NEAR(s.median_ape, 0.06, 1e-12);
  EXPECT_NEAR(s.p90_ape, 0.10, 1e-12);
}

TEST(Statistics, rows_without_measurement_or_prediction_count_but_do_not_score) {
  const auto s = scored({row(std::nullopt, 5), row(5, std::nullopt), row(4, 6, false), row(std::nullopt, 1, false)});
  EXPECT_EQ(s.rows, 4);
  EXPECT_EQ(s.predicted, 3);
  EXPECT_EQ(s.skipped, 1);
  EXPECT_EQ(s.scored, 1);
  EXPECT_EQ(s.infeasible, 2);
  EXPECT_DOUBLE_EQ(s.mape, 0.5);
  EXPECT_DOUBLE_EQ(s.p90_ape, 0.5);
}

TEST(Statistics, of_nothing_are_zero) {
  const auto s = scored({row(std::nullopt, 5)});
  EXPECT_EQ(s.scored, 0);
  EXPECT_EQ(s.mape, 0.0);
  EXPECT_EQ(s.median_ape, 0.0);
  EXPECT_EQ(s.p90_ape, 0.0);
}

}  // namespace
}  // namespace orrery::validate::statistics_test
