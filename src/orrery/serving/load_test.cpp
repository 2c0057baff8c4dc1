// Loads against what their distributions are, within five standard errors.
#include "orrery/serving/load.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::serving::load_test {
namespace {

constexpr std::int64_t kRequests = 20'000;
constexpr double kStandardErrors = 5.0;

Workload load_of_seed(std::uint64_t seed) {
  LoadOptions options;
  options.requests = kRequests;
  options.rate = 10.0;
  options.input = 1000;
  options.output = 200;
  options.length_cv = 0.5;
  options.seed = seed;
  return generated(options);
}

struct Columns {
  std::vector<double> gaps, inputs, outputs;
};

Columns columns_of(const Workload& load) {
  Columns columns;
  Ticks before = 0;
  for (const Request& request : load.requests) {
    columns.gaps.push_back(static_cast<double>(request.arrival - before) / kTicksPerSecond);
    columns.inputs.push_back(static_cast<double>(request.input));
    columns.outputs.push_back(static_cast<double>(request.output));
    before = request.arrival;
  }
  return columns;
}

struct Moments {
  double mean = 0.0, deviation = 0.0;
};

Moments moments_of(const std::vector<double>& values) {
  double sum = 0.0, squares = 0.0;
  for (const double value : values) { sum += value; }
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) { squares += (value - mean) * (value - mean); }
  return {mean, std::sqrt(squares / static_cast<double>(values.size()))};
}

// Of a[i] and b[i + lag].
double correlation(const std::vector<double>& a, const std::vector<double>& b, std::size_t lag) {
  const Moments of_a = moments_of(a), of_b = moments_of(b);
  double sum = 0.0;
  for (std::size_t i = 0; i + lag < a.size(); ++i) { sum += (a[i] - of_a.mean) * (b[i + lag] - of_b.mean); }
  return sum / static_cast<double>(a.size() - lag) / (of_a.deviation * of_b.deviation);
}

TEST(Load, has_the_means_and_deviations_that_are_asked_for) {
  const Columns columns = columns_of(load_of_seed(1));
  const double root = std::sqrt(static_cast<double>(kRequests));
  const Moments gaps = moments_of(columns.gaps), inputs = moments_of(columns.inputs),
                outputs = moments_of(columns.outputs);
  EXPECT_NEAR(gaps.mean, 0.1, kStandardErrors * 0.1 / root);
  EXPECT_NEAR(gaps.deviation, 0.1,
              kStandardErrors * 0.1 * std::sqrt(2.0) / root);              // exponential: variance of s is 2 / n of it
  EXPECT_NEAR(inputs.mean, 1000.0, kStandardErrors * 500.0 / root + 0.5);  // lengths are rounded
  EXPECT_NEAR(outputs.mean, 200.0, kStandardErrors * 100.0 / root + 0.5);
}

TEST(Load, inputs_of_one_length_leave_outputs_as_they_are) {
  LoadOptions options;
  options.requests = 100;
  options.input = 1000;
  options.output = 200;
  options.length_cv = 0.5;
  const Workload varied = generated(options);
  options.fixed_input = true;
  const Workload fixed = generated(options);
  for (std::size_t i = 0; i < fixed.requests.size(); ++i) {
    EXPECT_EQ(fixed.requests[i].input, 1000);
    EXPECT_EQ(fixed.requests[i].output, varied.requests[i].output);
  }
}

// The last of n requests arrives after n mean gaps, so that a run has the rate that was asked for.
TEST(Load, arrives_at_the_rate_that_is_asked_for) {
  for (const double cv : {0.0, 1.0, 4.0}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      LoadOptions options;
      options.requests = 300;
      options.rate = 7.0;
      options.cv = cv;
      options.seed = seed;
      const Workload load = generated(options);
      EXPECT_NEAR(static_cast<double>(load.requests.back().arrival) / kTicksPerSecond, 300.0 / 7.0, 1e-9);
    }
  }
}

// A stream that is another one shifted by a few draws has a correlation of 1 at that lag.
TEST(Load, of_neighbouring_seeds_is_independent) {
  const double most = kStandardErrors / std::sqrt(static_cast<double>(kRequests));
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Columns one = columns_of(load_of_seed(seed)), next = columns_of(load_of_seed(seed + 1));
    for (std::size_t lag = 0; lag < 4; ++lag) {
      EXPECT_LT(std::abs(correlation(one.gaps, next.gaps, lag)), most) << seed << ' ' << lag;
      EXPECT_LT(std::abs(correlation(next.gaps, one.gaps, lag)), most) << seed << ' ' << lag;
      EXPECT_LT(std::abs(correlation(one.inputs, next.inputs, lag)), most) << seed << ' ' << lag;
      EXPECT_LT(std::abs(correlation(next.inputs, one.inputs, lag)), most) << seed << ' ' << lag;
      EXPECT_LT(std::abs(correlation(one.inputs, one.outputs, lag)), most) << seed << ' ' << lag;
    }
  }
}

}  // namespace
}  // namespace orrery::serving::load_test
