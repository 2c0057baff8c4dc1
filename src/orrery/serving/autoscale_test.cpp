// Laws of autoscaling.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::autoscale_test {

using engine_test::Pools;
using engine_test::random_case;
using engine_test::random_pools;
using engine_test::RandomCase;

ScaleSignal any_signal() { return *rc::gen::element(ScaleSignal::requests, ScaleSignal::queue, ScaleSignal::kv); }

AutoscaleOptions any_scale() {
  AutoscaleOptions scale;
  scale.least = 1;
  scale.signal = any_signal();
  scale.target = scale.signal == ScaleSignal::kv ? *rc::gen::element(0.05, 0.5) : *rc::gen::element(0.5, 3.0);
  scale.interval = ticks_of(Seconds(*rc::gen::element(0.01, 0.1, 1.0)));
  scale.start = ticks_of(Seconds(*rc::gen::element(0.0, 0.3)));
  scale.hold = ticks_of(Seconds(*rc::gen::element(0.0, 0.5)));
  return scale;
}

// A pool that may not shrink is a fixed pool, bit for bit. Its engine-seconds are engines x time.
RC_GTEST_PROP(Autoscale, a_pool_with_one_size_is_fixed, ()) {
  RandomCase c = random_case();
  c.fleet.autoscale = {};
  c.fleet.options.routing = *rc::gen::element(Routing::least_outstanding, Routing::round_robin, Routing::random);
  Workload again = c.load;
  const FleetRun plain = c.fleet.run(c.load);
  c.fleet.autoscale = {c.fleet.replicas, 1.0, ticks_of(Seconds(0.05)), 0, 0, any_signal()};
  const FleetRun same = c.fleet.run(again);
  RC_ASSERT(plain.end == same.end && plain.system_integral == same.system_integral);
  for (std::size_t i = 0; i < plain.outcomes.size(); ++i) {
    const Outcome &a = plain.outcomes[i], &b = same.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last && a.engine == b.engine);
  }
  Ticks first = kNever;
  for (const Request& request : again.requests) { first = std::min(first, request.arrival); }
  const double expected = static_cast<double>(c.fleet.replicas) * seconds_of(same.end - first);
  RC_ASSERT(std::abs(same.autoscaled[0].engine_seconds - expected) <= 1e-9 * expected);
  RC_ASSERT(same.autoscaled[0].starts == 0 && same.autoscaled[0].stops == 0);
}

// Between the smallest and the largest pool: requests are served, and engine-seconds lie between both.
RC_GTEST_PROP(Autoscale, requests_are_conserved_and_engine_seconds_bounded, ()) {
  RandomCase c = random_case();
  c.fleet.replicas = 4;
  c.fleet.autoscale = any_scale();
  const FleetRun run = c.fleet.run(c.load);
  Ticks first = kNever;
  std::int64_t generated = 0, outputs = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    RC_ASSERT(run.outcomes[i].done());
    first = std::min(first, c.load.requests[i].arrival);
    outputs += c.load.requests[i].output;
  }
  for (const EngineTotals& totals : run.engines) { generated += totals.generated; }
  RC_ASSERT(generated == outputs);
  const AutoscaleTotals& scaled = run.autoscaled[0];
  const double time = seconds_of(run.end - first);
  RC_ASSERT(scaled.engine_seconds >= time * (1 - 1e-9) && scaled.engine_seconds <= 4 * time * (1 + 1e-9));
  RC_ASSERT(scaled.most >= 1 && scaled.most <= 4 && scaled.starts >= scaled.stops);
  double busy = 0;
  for (const EngineTotals& totals : run.engines) { busy += totals.busy_s; }
  RC_ASSERT(busy <= scaled.engine_seconds * (1 + 1e-9));
}

// By hand: 8 requests at once, one engine, 2 requests for each: the decision after 1 s wants 4 engines, 3 of which
// start and are ready 2 s later. They find nothing to do (the requests are on the first engine), and are switched off
// when fewer have been enough for 3 s: requests end after about 10.3 s, so at the decision at 14 s.
TEST(Autoscale, engines_start_and_stop_at_the_times_of_the_rule) {
  Autoscaler scaler({1, 2.0, ticks_of(Seconds(1)), ticks_of(Seconds(2)), ticks_of(Seconds(3))}, 4);
  const auto at = [](double seconds) { return ticks_of(Seconds(seconds)); };
  scaler.begin(0);
  double now = 0;
  const auto load = [&](std::size_t engine) { return engine == 0 && now < 10.3 ? 8.0 : 0.0; };
  const Autoscaler::View view{load, [&](std::size_t engine) { return load(engine) == 0.0; }};
  std::vector<std::pair<double, std::size_t>> changes;
  for (std::size_t active = 1; now < 20;) {
    now = seconds_of(scaler.next());
    scaler.step(scaler.next(), view);
    if (scaler.active().size() != active) {
      active = scaler.active().size();
      changes.emplace_back(now, active);
    }
  }
  const std::vector<std::pair<double, std::size_t>> expected = {{3.0, 4}, {14.0, 1}};
  EXPECT_EQ(changes, expected);
  const AutoscaleTotals totals = scaler.totals(at(20));
  EXPECT_EQ(totals.starts, 3);
  EXPECT_EQ(totals.stops, 3);
  EXPECT_NEAR(totals.engine_seconds, 20 + 3 * 13, 1e-9);  // the three from 1 s to 14 s
}

// The same of two pools, each with a signal of its own.
RC_GTEST_PROP(Autoscale, pools_with_one_size_are_fixed, ()) {
  RandomCase c = random_case();
  Pools pools = random_pools(c);
  pools.prefill.autoscale = pools.decode.autoscale = {};
  Workload again = c.load;
  const FleetRun plain = pools.run(c.load);
  pools.prefill.autoscale = {pools.prefill.replicas, 1.0, ticks_of(Seconds(0.05)), 0, 0, any_signal()};
  pools.decode.autoscale = {pools.decode.replicas, 1.0, ticks_of(Seconds(0.07)), 0, 0, any_signal()};
  const FleetRun same = pools.run(again);
  RC_ASSERT(plain.end == same.end && plain.system_integral == same.system_integral);
  for (std::size_t i = 0; i < plain.outcomes.size(); ++i) {
    const Outcome &a = plain.outcomes[i], &b = same.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last && a.engine == b.engine);
  }
}

// Two pools that scale: requests are served. A prefill engine is on until it has sent all its requests: its pool is on
// for at least the time of all transfers, sent as many at once as its links can, and for that of its iterations.
RC_GTEST_PROP(Autoscale, a_prefill_engine_is_on_until_it_has_sent_its_requests, ()) {
  RandomCase c = random_case();
  Pools pools = random_pools(c);
  pools.prefill.replicas = pools.decode.replicas = 3;
  pools.prefill.autoscale = any_scale();
  pools.decode.autoscale = any_scale();
  pools.options.transfer.token = *rc::gen::element<Ticks>(1000, ticks_of(Seconds(1e-3)));
  const FleetRun run = pools.run(c.load);
  double sent = 0, busy = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    const Request& request = c.load.requests[i];
    RC_ASSERT(run.outcomes[i].done());
    if (request.output > 1) { sent += seconds_of(request.input * pools.options.transfer.token); }
  }
  for (std::size_t i = 0; i < 3; ++i) { busy += run.engines[i].busy_s; }
  const double at_once = static_cast<double>(pools.options.transfer.sends), all = sent;
  if (pools.decode.shape.keeps_sent) { sent = run.transferred_s; }  // without what decode engines have already
  RC_ASSERT(sent <= all * (1 + 1e-9) && run.transferred_s >= sent * (1 - 1e-9));
  RC_ASSERT(run.autoscaled[0].engine_seconds * at_once >= sent * (1 - 1e-9));
  RC_ASSERT(run.autoscaled[0].engine_seconds >= busy * (1 - 1e-9));
}

// By hand: prompts of 100 tokens take 20 ms and are sent in 2 s. Two requests wait at the decision at 1 s: engine 1 is
// on; one of the two at 1.5 s runs there until 1.52 s. At 2 s none waits or runs: engine 1 drains, and is off when it
// has sent its request, at 3.52 s.
TEST(Autoscale, a_prefill_engine_that_drains_is_off_when_its_request_is_sent) {
  Workload load;
  for (const double arrival : {0.99, 0.99, 1.5, 1.5}) {
    Request request;
    request.arrival = ticks_of(Seconds(arrival));
    request.input = 100;
    request.output = 2;
    load.requests.push_back(request);
  }
  Pools pools;
  pools.prefill.replicas = 2;
  pools.prefill.autoscale = {1, 1.0, ticks_of(Seconds(0.01)), 0, ticks_of(Seconds(0.6)), ScaleSignal::requests};
  pools.options.transfer.token = ticks_of(Seconds(20e-3));
  pools.options.transfer.receives = 4;
  const FleetRun run = pools.run(load);
  const AutoscaleTotals& totals = run.autoscaled[0];
  EXPECT_EQ(run.outcomes[3].engine, 2);
  EXPECT_EQ(totals.starts, 1);
  EXPECT_EQ(totals.stops, 1);
  EXPECT_NEAR(totals.engine_seconds, seconds_of(run.end) - 0.99 + (3.52 - 1.0), 1e-9);
}

// Wanted: ceil(sum of the signal / target). Four engines at exactly their target are enough; a little more is not.
TEST(Autoscale, engines_follow_the_sum_of_the_signal) {
  const auto engines_at = [](double part) {
    Autoscaler scaler({1, 0.7, 10, 0, 0, ScaleSignal::kv}, 8);
    scaler.begin(0);
    std::size_t on = 1;
    const Autoscaler::View view{[&](std::size_t i) { return i < on ? part : 0.0; }, [](std::size_t) { return false; }};
    for (int decision = 0; decision < 10; ++decision) {
      scaler.step(scaler.next(), view);
      on = scaler.active().size();
    }
    return on;
  };
  EXPECT_EQ(engines_at(0.7), 1U);
  EXPECT_EQ(engines_at(0.71), 8U);  // each engine that is added is as full: up to the limit
  Autoscaler scaler({4, 0.7, 10, 0, 0, ScaleSignal::kv}, 8);
  scaler.begin(0);
  scaler.step(10, {[](std::size_t i) { return i < 4 ? 0.7 : 0.0; }, [](std::size_t) { return false; }});
  EXPECT_EQ(scaler.active().size(), 4U);
  scaler.step(20, {[](std::size_t i) { return i < 4 ? 0.7001 : 0.0; }, [](std::size_t) { return false; }});
  EXPECT_EQ(scaler.active().size(), 5U);
}

// An engine that was switched off has lost its cache. One request for each engine, decisions every second, no start-up
// time: of two requests at once the second has no engine of its own before the next decision. Prompts are the same 64
// tokens; answers take 2 s, so that engine 1 is on from 1 s to 4 s, and again from 11 s.
TEST(Autoscale, an_engine_that_was_off_finds_nothing_in_its_cache) {
  Workload load;
  load.block_tokens = 16;
  load.block_ids = {0, 1, 2, 3};
  for (const double arrival : {0.0, 0.5, 1.2, 1.3, 10.0, 10.5, 11.2, 11.3}) {
    Request request;
    request.arrival = ticks_of(Seconds(arrival));
    request.input = 64;
    request.output = 200;
    request.blocks = 4;
    load.requests.push_back(request);
  }
  TestFleet fleet;
  fleet.replicas = 2;
  fleet.autoscale = {1, 1.0, ticks_of(Seconds(1)), 0, 0, ScaleSignal::requests};
  const FleetRun run = fleet.run(load);
  const std::vector<std::pair<std::int32_t, std::int64_t>> expected = {{0, 0},  {0, 63}, {1, 0}, {1, 63},
                                                                       {0, 63}, {0, 63}, {1, 0}, {1, 63}};
  std::vector<std::pair<std::int32_t, std::int64_t>> found;
  for (const Outcome& outcome : run.outcomes) { found.emplace_back(outcome.engine, outcome.cached); }
  EXPECT_EQ(found, expected);
}

}  // namespace orrery::serving::autoscale_test
