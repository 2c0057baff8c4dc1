// A run over time: sums over intervals are the totals of the run.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"

namespace orrery::api::serve_series_test {
namespace {

using serving_test::run_of;

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

void expect_totals(const results::Serving& run) {
  ASSERT_TRUE(run.series.has_value());
  const results::ServingSeries& s = *run.series;
  const auto count = static_cast<double>(s.waiting.size());
  const auto requests = static_cast<double>(run.requests);
  EXPECT_NEAR(s.interval_s * count, run.duration_s, 1e-9 * run.duration_s);
  EXPECT_NEAR(sum_of(s.arrivals_per_s) * s.interval_s, requests, 1e-9 * requests);
  EXPECT_NEAR(sum_of(s.in_system) / count, run.mean_in_system, 1e-9 * run.mean_in_system);
  EXPECT_NEAR(sum_of(s.output_tokens_per_s) / count, run.output_tokens_per_s, 1e-9 * run.output_tokens_per_s);
  const double waiting = run.queue.mean + (run.place ? run.place->mean : 0.0);
  EXPECT_NEAR(sum_of(s.waiting) * s.interval_s, waiting * requests, 1e-6 * waiting * requests);
  double most = 0;
  for (const auto& ttft : s.ttft_max_s) { most = std::max(most, ttft.value_or(0.0)); }
  EXPECT_DOUBLE_EQ(most, run.ttft.max);
}

TEST(ServeSeries, sums_are_the_totals_of_the_run) { expect_totals(run_of(serving_test::small_run())); }

TEST(ServeSeries, of_pools_and_of_a_closed_loop) {
  ServeRequest request = serving_test::small_run();
  request.scenario.prefill_replicas = 1;
  expect_totals(run_of(request));
  request.scenario.rate.reset();
  request.scenario.concurrency = 300;  // more than a decode engine has places for
  request.scenario.requests = 900;
  expect_totals(run_of(request));
}

TEST(ServeSeries, has_the_engines_that_are_on) {
  ServeRequest request = serving_test::small_run();
  request.scenario.replicas = 4;
  request.scenario.autoscale_min = 1;
  request.scenario.autoscale_target = 2;
  request.scenario.autoscale_interval = Seconds(1);
  request.scenario.autoscale_start = Seconds(1);
  const results::Serving run = run_of(request);
  expect_totals(run);
  ASSERT_EQ(run.series->engines.size(), 1U);
  const auto& on = run.series->engines.front().on;
  const double mean = run.pools.front().autoscale->mean_engines;
  EXPECT_NEAR(sum_of(on) / static_cast<double>(on.size()), mean, 1e-9 * mean);
  EXPECT_GT(*std::max_element(on.begin(), on.end()), 1.0);
}

}  // namespace
}  // namespace orrery::api::serve_series_test
