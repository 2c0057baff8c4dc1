#include "orrery/calibrate/least_squares.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace orrery::calibrate::least_squares_test {
namespace {

constexpr double kWide = 100.0;  // a prior that hardly holds

// Times a / x + b y of rows (a, b): x a rate, y a latency.
struct Line {
  double a, b;
};
const std::vector<Line> kLines = {{1, 0.001}, {2, 0.5}, {4, 1}, {0.1, 3}, {8, 0.1}, {0.5, 2}, {3, 3}, {0.01, 1}};

Predict predict_lines(const std::vector<Line>& lines) {
  return [&lines](std::span<const double> values, std::span<double> seconds) {
    for (std::size_t i = 0; i < lines.size(); ++i) { seconds[i] = lines[i].a / values[0] + lines[i].b * values[1]; }
  };
}

std::vector<double> times(const std::vector<Line>& lines, double x, double y) {
  std::vector<double> seconds(lines.size());
  const std::array<double, 2> values = {x, y};
  predict_lines(lines)(values, seconds);
  return seconds;
}

TEST(LeastSquares, finds_the_figures_that_made_the_times) {
  const std::vector<Unknown> unknowns = {{1.0, 0.1, 10.0, kWide}, {1.0, 0.1, 10.0, kWide}};
  const auto measured = times(kLines, 0.7, 1.9);
  const Solution solution = fit(unknowns, measured, 0.05, predict_lines(kLines));
  EXPECT_NEAR(solution.values[0], 0.7, 1e-3);
  EXPECT_NEAR(solution.values[1], 1.9, 3e-3);
  for (const double residual : solution.after) { EXPECT_NEAR(residual, 0.0, 2e-3); }
  for (std::size_t i = 0; i < kLines.size(); ++i) {
    EXPECT_NEAR(solution.before[i], std::log(times(kLines, 1.0, 1.0)[i] / measured[i]), 1e-12);
  }
}

TEST(LeastSquares, a_figure_that_no_row_depends_on_stays_where_it_was) {
  const std::vector<Line> lines = {{1, 0}, {2, 0}};
  const std::vector<Unknown> unknowns = {{1.0, 0.1, 10.0, 0.1}, {1.0, 0.1, 10.0, 0.1}};
  const Solution solution = fit(unknowns, times(lines, 0.9, 5.0), 0.05, predict_lines(lines));
  EXPECT_DOUBLE_EQ(solution.values[1], 1.0);
  EXPECT_NEAR(solution.deviation[1], 0.1, 1e-9);  // as uncertain as before
  EXPECT_LT(solution.deviation[0], 0.1);
}

// One row says ln x = -ln 2 with a scatter of 0.1, the prior 0 with a spread of 0.1: half of it. 2 scatters of Huber
// are 0.2, so the row is cut; with a scatter of 0.5 it is not: -ln 2 / (1 + 0.25 / 0.01).
TEST(LeastSquares, row_and_prior_are_weighted_by_their_variances) {
  const std::vector<Line> lines = {{1, 0}};
  const std::vector<Unknown> unknowns = {{1.0, 0.1, 10.0, 0.1}, {1.0, 0.1, 10.0, 0.1}};
  const Solution solution = fit(unknowns, times(lines, 2.0, 1.0), 0.5, predict_lines(lines));
  EXPECT_NEAR(std::log(solution.values[0]), std::log(2.0) / 26.0, 1e-4);
}

TEST(LeastSquares, a_row_far_off_does_not_lead) {
  std::vector<Line> lines(9, {1, 0});
  auto measured = times(lines, 1.0, 1.0);
  measured.back() *= 20.0;
  const std::vector<Unknown> unknowns = {{1.0, 0.01, 10.0, kWide}, {1.0, 0.1, 10.0, kWide}};
  const Solution solution = fit(unknowns, measured, 0.05, predict_lines(lines));
  // 8 rows pull with r / 0.05^2 each, the ninth with 2 / 0.05 at most: |r| <= 2 x 0.05 / 8.
  EXPECT_NEAR(std::log(solution.values[0]), 0.0, 2.0 * 0.05 / 8.0 + 1e-3);
}

TEST(LeastSquares, values_stay_within_their_bounds) {
  const std::vector<Unknown> unknowns = {{1.0, 0.9, 1.1, kWide}, {1.0, 0.1, 10.0, kWide}};
  const Solution solution = fit(unknowns, times(kLines, 0.5, 1.0), 0.05, predict_lines(kLines));
  EXPECT_NEAR(solution.values[0], 0.9, 1e-12);
}

// What rows contribute to a figure sums to its change; what a row does alone is what is missing without it.
TEST(LeastSquares, moves_add_up_and_left_out_is_a_fit_without_the_row) {
  const std::vector<Unknown> unknowns = {{1.0, 0.1, 10.0, 0.3}, {1.0, 0.1, 10.0, 0.3}};
  auto measured = times(kLines, 0.95, 1.05);
  measured[2] *= 1.04;
  const Solution solution = fit(unknowns, measured, 0.05, predict_lines(kLines));
  for (std::size_t j = 0; j < 2; ++j) {
    const auto& moves = solution.moves[j];
    EXPECT_NEAR(std::accumulate(moves.begin(), moves.end(), 0.0), std::log(solution.values[j]), 1e-3);
  }
  for (std::size_t out = 0; out < kLines.size(); ++out) {
    auto lines = kLines;
    auto others = measured;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(out));
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    const Solution without = fit(unknowns, others, 0.05, predict_lines(lines));
    const double left_out = std::log(times(kLines, without.values[0], without.values[1])[out] / measured[out]);
    EXPECT_NEAR(solution.left_out[out], left_out, 2e-3) << out;
  }
}

}  // namespace
}  // namespace orrery::calibrate::least_squares_test
