// Least squares on the logarithm of predicted / measured, for figures that are positive.
//
// Minimises  sum_i huber(r_i / scatter) + sum_j (ln(x_j / start_j) / spread_j)^2  over low_j <= x_j <= high_j, where
// r_i = ln(predicted_i / measured_i). Huber's function is the square up to 2 and grows linearly from there, so that
// single rows far off do not lead. The second sum is the prior: a figure stays where it was unless rows say otherwise.
// Solved by Levenberg and Marquardt's method with derivatives from differences; every step ends inside the bounds.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace orrery::calibrate {

inline constexpr std::size_t kMostSteps = 25;

// A figure to fit. All values are positive.
struct Unknown {
  double start = 1.0;
  double low = 0.5, high = 2.0;  // bounds
  double spread = 0.1;           // of the prior: standard deviation of ln(value / start)
};

// Seconds of every row for these values of the unknowns; positive and finite. Called from one thread.
using Predict = std::function<void(std::span<const double> values, std::span<double> seconds)>;

struct Solution {
  std::vector<double> values;
  std::vector<double> deviation;           // standard deviation of ln(value), by the curvature at the solution
  std::vector<double> before, after;       // ln(predicted / measured) of every row
  std::vector<double> left_out;            // the same, of a fit without that row (linearised)
  std::vector<std::vector<double>> moves;  // [unknown][row]: part of ln(value / start) that is due to the row
};

// `scatter`: standard deviation of r_i that is expected of a right model. `measured` in seconds, positive.
[[nodiscard]] Solution fit(std::span<const Unknown> unknowns, std::span<const double> measured, double scatter,
                           const Predict& predict);

}  // namespace orrery::calibrate
