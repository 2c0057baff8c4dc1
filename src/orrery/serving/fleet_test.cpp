// Laws of fleets: admission limits, tokenisation and streaming.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::fleet_test {

using engine_test::load_of;
using engine_test::random_case;
using engine_test::RandomCase;

// A limit that is never reached changes nothing, bit for bit. A lower one: requests end or are refused, never more are
// in the system, and a session ends with a turn that is refused.
RC_GTEST_PROP(Admission, a_limit_refuses_what_exceeds_it_and_nothing_else, ()) {
  RandomCase c = random_case();
  RC_PRE(c.load.clients == 0);
  Workload again = c.load, once_more = c.load;
  const FleetRun plain = c.fleet.run(c.load);
  c.fleet.options.admission = {std::max<std::int64_t>(1, plain.most_in_system), 1, 1000, ticks_of(Seconds(1e5))};
  const FleetRun same = c.fleet.run(again);
  RC_ASSERT(same.refused == 0 && same.end == plain.end && same.system_integral == plain.system_integral);
  for (std::size_t i = 0; i < plain.outcomes.size(); ++i) {
    const Outcome &a = plain.outcomes[i], &b = same.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last && !b.refused);
  }
  c.fleet.options.admission = {};
  c.fleet.options.admission.limit = *rc::gen::inRange<std::int64_t>(1, 8);
  const FleetRun run = c.fleet.run(once_more);
  RC_ASSERT(run.most_in_system <= c.fleet.options.admission.limit);
  std::int64_t refused = 0, outputs = 0, generated = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    RC_ASSERT(run.outcomes[i].done() != run.outcomes[i].refused);
    refused += run.outcomes[i].refused ? 1 : 0;
    outputs += run.outcomes[i].refused ? 0 : once_more.requests[i].output;
    const bool follows = !once_more.following.empty() && once_more.following[i].waits_for > 0;
    if (follows && run.outcomes[i - 1].refused) { RC_ASSERT(run.outcomes[i].refused); }
  }
  for (const EngineTotals& totals : run.engines) { generated += totals.generated; }
  RC_ASSERT(refused == run.refused && generated == outputs);
}

// M/D/1/K: with a limit of 1 every arrival during a service is refused. Erlang's loss formula: rho / (1 + rho).
TEST(Admission, a_limit_of_one_refuses_as_erlang_says) {
  TestFleet fleet;
  fleet.options.admission.limit = 1;
  const double service = 10e-3 + 100 * 100e-6, rho = 0.7;
  const std::int64_t count = test::cases(200'000);
  Workload load = load_of(count, rho / service, 100, 1, 1.0, 7);
  const FleetRun run = fleet.run(load);
  const double expected = rho / (1 + rho), n = static_cast<double>(count);
  EXPECT_NEAR(static_cast<double>(run.refused) / n, expected, 3 * std::sqrt(expected * (1 - expected) / n));
}

// By hand: 2 tokens, one more each second. At 0 two of three requests pass; at 0.5 the bucket is empty, at 1.5 it has
// one token, which the first of two takes; at 10 it has two, not nine.
TEST(Admission, a_bucket_lets_its_rate_and_burst_pass) {
  Workload load;
  for (const double arrival : {0.0, 0.0, 0.0, 0.5, 1.5, 1.5, 10.0, 10.0, 10.0}) {
    Request request;
    request.arrival = ticks_of(Seconds(arrival));
    request.input = request.output = 1;
    load.requests.push_back(request);
  }
  TestFleet fleet;
  fleet.options.admission.period = ticks_of(Seconds(1));
  fleet.options.admission.burst = 2;
  const FleetRun run = fleet.run(load);
  const std::vector<bool> expected = {false, false, true, true, false, true, false, false, true};
  std::vector<bool> refused;
  for (const Outcome& outcome : run.outcomes) { refused.push_back(outcome.refused); }
  EXPECT_EQ(refused, expected);
}

// In any time t at most burst + t x rate requests pass.
RC_GTEST_PROP(Admission, a_bucket_never_lets_more_pass, ()) {
  RandomCase c = random_case();
  RC_PRE(c.load.clients == 0);
  const double rate = *rc::gen::element(2.0, 30.0);
  c.fleet.options.admission.period = ticks_of(Seconds(1.0 / rate));
  c.fleet.options.admission.burst = *rc::gen::inRange<std::int64_t>(1, 6);
  const FleetRun run = c.fleet.run(c.load);
  std::vector<Ticks> passed;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    if (!run.outcomes[i].refused) { passed.push_back(c.load.requests[i].arrival); }
  }
  std::sort(passed.begin(), passed.end());
  for (std::size_t i = 0; i < passed.size(); ++i) {
    for (std::size_t k = i; k < passed.size(); ++k) {
      const double most =
          static_cast<double>(c.fleet.options.admission.burst) + seconds_of(passed[k] - passed[i]) * rate;
      RC_ASSERT(static_cast<double>(k - i + 1) <= most + 1e-6);
    }
  }
}

// M/D/1 at twice its capacity, requests one at a time: half are refused, and those that pass wait about the limit at
// most, because services are as long as predicted. Without refusals the queue grows to half of the run.
TEST(Admission, a_limit_on_the_predicted_wait_bounds_the_wait) {
  TestFleet fleet;
  fleet.settings.max_sequences = 1;
  const double service = 10e-3 + 100 * 100e-6, limit = 0.5;
  Workload load = load_of(4000, 2.0 / service, 100, 1, 1.0, 3), again = load;
  fleet.options.admission.wait = ticks_of(Seconds(limit));
  const FleetRun run = fleet.run(load);
  fleet.options.admission = {};
  const FleetRun all = fleet.run(again);
  double longest = 0, longest_of_all = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    longest_of_all = std::max(longest_of_all, seconds_of(all.outcomes[i].scheduled - again.requests[i].arrival));
    if (run.outcomes[i].refused) { continue; }
    longest = std::max(longest, seconds_of(run.outcomes[i].scheduled - load.requests[i].arrival));
  }
  EXPECT_LE(longest, limit + 2 * service);
  EXPECT_GE(longest, 0.8 * limit);
  EXPECT_GE(longest_of_all, 20.0);
  EXPECT_NEAR(static_cast<double>(run.refused) / 4000.0, 0.5, 0.05);
}

// A server tokenises one prompt after the other: two prompts of 100 tokens at 1 ms each are ready after 100 and 200 ms.
// Iterations of a prompt take 10 ms + 100 x 100 us. Two engines have two servers.
TEST(Tokenising, prompts_wait_for_those_before_them) {
  TestFleet fleet;
  fleet.shape.prompt_host = ticks_of(Seconds(1e-3));
  Workload load = load_of(2, 0.0, 100, 1, 1.0, 1), again = load;
  const FleetRun one = fleet.run(load);
  EXPECT_NEAR(seconds_of(one.outcomes[0].first), 120e-3, 1e-12);
  EXPECT_NEAR(seconds_of(one.outcomes[1].first), 220e-3, 1e-12);
  fleet.replicas = 2;
  const FleetRun two = fleet.run(again);
  EXPECT_NEAR(seconds_of(two.outcomes[1].first), 120e-3, 1e-12);
}

// A server sends one token after the other. The prompt of a token takes 10.1 ms. At 50 ms a token the server is the
// bottleneck: 4 tokens are sent at 60.1, 110.1, 160.1 and 210.1 ms, while the engine is done after 40.2 ms. At 1 ms the
// engine is: the first token is sent at 11.1 ms, the last one 1 ms after the engine, whose 3 decode steps take 10.02 ms
// and 2, 3 and 4 positions of 0.1 us.
TEST(Streaming, tokens_wait_for_those_before_them_while_the_engine_runs_on) {
  TestFleet fleet;
  Workload load = load_of(1, 0.0, 1, 4, 1.0, 1), again = load;
  fleet.shape.token_host = ticks_of(Seconds(50e-3));
  const FleetRun slow = fleet.run(load);
  EXPECT_NEAR(seconds_of(slow.outcomes[0].first), 60.1e-3, 1e-12);
  EXPECT_NEAR(seconds_of(slow.outcomes[0].last), 210.1e-3, 1e-12);
  EXPECT_NEAR(slow.engines[0].busy_s, 40.1609e-3, 1e-12);
  fleet.shape.token_host = ticks_of(Seconds(1e-3));
  const FleetRun fast = fleet.run(again);
  EXPECT_NEAR(seconds_of(fast.outcomes[0].first), 11.1e-3, 1e-12);
  EXPECT_NEAR(seconds_of(fast.outcomes[0].last), 41.1609e-3, 1e-12);
}

// A client sends its next request when the last token is sent: 8 clients of a server that is the bottleneck get its
// rate.
TEST(Streaming, a_closed_loop_gets_at_most_the_rate_of_the_server) {
  TestFleet fleet;
  fleet.shape.token_host = ticks_of(Seconds(5e-3));
  LoadOptions options;
  options.requests = 200;
  options.clients = 8;
  options.input = 10;
  options.output = 50;
  Workload load = generated(options);
  const FleetRun run = fleet.run(load);
  const double rate = 200.0 * 50.0 / seconds_of(run.end);
  EXPECT_LE(rate, 200.0);
  EXPECT_GE(rate, 0.98 * 200.0);
}

}  // namespace orrery::serving::fleet_test
