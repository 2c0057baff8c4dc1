// A run is stopped only if it misses its service level.
#include "orrery/serving/slo_watch.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/request_times.hpp"
#include "orrery/serving/summary.hpp"
#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::slo_watch_test {
namespace {

std::vector<results::ServiceLevel> random_slo() {
  std::vector<results::ServiceLevel> slo;
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    results::ServiceLevel level;
    level.metric = *rc::gen::element<std::string>("ttft", "tpot", "e2e");
    level.measure = *rc::gen::element<std::string>("mean", "p50", "p90", "p99");
    level.limit_s = *rc::gen::element(0.001, 0.012, 0.02, 0.1, 0.5, 2.0, 10.0);
    slo.push_back(level);
  }
  return slo;
}

// Summaries are the reference: they sort all times of a complete run.
RC_GTEST_PROP(SloWatch, says_so_at_some_request_only_if_the_whole_run_misses_a_percentile, ()) {
  auto c = engine_test::random_case();
  c.fleet.options.admission = {};
  const auto slo = random_slo();
  const double warm_up = *rc::gen::element(0.0, 0.1, 0.5), overhead = *rc::gen::element(0.0, 0.01);
  Workload again = c.load;
  const FleetRun run = c.fleet.run(c.load);
  results::Serving whole;
  whole.slo = slo;
  whole.pools.resize(1);
  const std::vector<Pool> pools = {
      {&c.fleet.settings, c.fleet.shape, &c.fleet.price, c.fleet.replicas, c.fleet.autoscale}};
  for (const auto& station : c.fleet.options.stations) {
    (void)station;
    whole.stages.push_back({});
  }
  summarise(whole, c.load, pools, run, {warm_up, overhead, false, c.fleet.options.stations});
  SloWatch watch(slo, again, warm_up, overhead);
  c.fleet.options.stops_after = [&](std::int64_t request, const Outcome& outcome) {
    return watch.is_missed_with(request, outcome);
  };
  const FleetRun stopped = c.fleet.run(again);
  bool misses_percentile = false;
  for (const auto& level : whole.slo) {
    misses_percentile = misses_percentile || (level.measure != "mean" && !level.holds());
  }
  if (stopped.stopped) { RC_ASSERT(!whole.meets_slo()); }
  // Which turns of sessions the warm-up leaves out is known at the end.
  const bool is_open = !again.following.empty() && warm_up_requests(again.requests.size(), warm_up) > 0;
  if (misses_percentile) { RC_ASSERT(stopped.stopped == !is_open); }
  RC_ASSERT(stopped.end <= run.end);
}

// Ten requests at once, one after the other in 1 s each: p50 has rank 5, so five may be above the limit.
TEST(SloWatch, stops_at_the_first_request_that_decides) {
  Workload load;
  load.requests.resize(10);
  for (Request& request : load.requests) { request.input = request.output = 1; }
  const auto first_decided = [&](const char* slo) {
    SloWatch watch(*read_slo(slo), load, 0.0, 0.0);
    for (std::int64_t i = 0; i < 10; ++i) {
      Outcome outcome;
      outcome.first = outcome.last = ticks_of(Seconds(static_cast<double>(i + 1)));
      if (watch.is_missed_with(i, outcome)) { return i; }
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(first_decided("ttft_p50=3.5s"), 8);   // 4, 5, ..., 9 s are six
  EXPECT_EQ(first_decided("ttft_p90=3.5s"), 4);   // 4 and 5 s
  EXPECT_EQ(first_decided("ttft_p99=3.5s"), 3);   // 4 s
  EXPECT_EQ(first_decided("ttft_mean=3.5s"), 7);  // 1 + ... + 8 = 36 s, more than 10 x 3.5 s
  EXPECT_EQ(first_decided("ttft_p50=5s"), -1);
}

}  // namespace
}  // namespace orrery::serving::slo_watch_test
