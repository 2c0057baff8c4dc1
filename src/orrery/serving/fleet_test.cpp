// Laws of fleets: admission limits, tokenisation and streaming, tiers of the prefix cache.
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
  c.fleet.options.admission_limit = std::max<std::int64_t>(1, plain.most_in_system);
  const FleetRun same = c.fleet.run(again);
  RC_ASSERT(same.refused == 0 && same.end == plain.end && same.system_integral == plain.system_integral);
  for (std::size_t i = 0; i < plain.outcomes.size(); ++i) {
    const Outcome &a = plain.outcomes[i], &b = same.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last && !b.refused);
  }
  c.fleet.options.admission_limit = *rc::gen::inRange<std::int64_t>(1, 8);
  const FleetRun run = c.fleet.run(once_more);
  RC_ASSERT(run.most_in_system <= c.fleet.options.admission_limit);
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
  fleet.options.admission_limit = 1;
  const double service = 10e-3 + 100 * 100e-6, rho = 0.7;
  const std::int64_t count = test::cases(200'000);
  Workload load = load_of(count, rho / service, 100, 1, 1.0, 7);
  const FleetRun run = fleet.run(load);
  const double expected = rho / (1 + rho), n = static_cast<double>(count);
  EXPECT_NEAR(static_cast<double>(run.refused) / n, expected, 3 * std::sqrt(expected * (1 - expected) / n));
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

// Tiers without room change nothing, bit for bit.
RC_GTEST_PROP(Tiers, tiers_of_no_size_are_no_tiers, ()) {
  RandomCase c = random_case();
  c.fleet.shape.tiers.clear();
  Workload again = c.load;
  const FleetRun plain = c.fleet.run(c.load);
  const std::int64_t less_than_a_block = std::max<std::int64_t>(0, c.load.block_tokens - 1);
  c.fleet.shape.tiers = {{0, 7000, 9000}, {less_than_a_block, 7000, 9000}};
  const FleetRun tiered = c.fleet.run(again);
  RC_ASSERT(plain.end == tiered.end);
  for (std::size_t i = 0; i < plain.outcomes.size(); ++i) {
    const Outcome &a = plain.outcomes[i], &b = tiered.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last && a.cached == b.cached);
  }
}

// One client: a request at a time, so that memory never delays one. With a tier that is unlimited and takes no time, a
// cache of one request finds what an unlimited cache finds, at the same times. A slower tier finds the same later.
RC_GTEST_PROP(Tiers, an_unlimited_tier_without_time_is_an_unlimited_cache, ()) {
  LoadOptions options;
  options.requests = 60;
  options.clients = 1;
  options.input = *rc::gen::inRange<std::int64_t>(64, 300);
  options.output = *rc::gen::inRange<std::int64_t>(1, 30);
  options.range = 0.5;
  options.prefix_groups = *rc::gen::element<std::int64_t>(1, 5, 20);
  options.prefix_tokens = 96;
  options.turns = *rc::gen::element<std::int64_t>(1, 3);
  options.turn_input = 20;
  options.seed = *rc::gen::arbitrary<std::uint32_t>();
  Workload load = generated(options), again = load, later = load;
  TestFleet fleet;
  const FleetRun unlimited = fleet.run(load);
  std::int64_t longest = 0;
  for (const Request& request : load.requests) { longest = std::max(longest, request.input + request.output); }
  fleet.shape.blocks = longest / fleet.settings.block_tokens + 2;
  fleet.shape.tiers = {{*rc::gen::element<std::int64_t>(0, 160), 0, 0}, {std::int64_t{1} << 40, 0, 0}};
  const FleetRun tiered = fleet.run(again);
  for (auto& tier : fleet.shape.tiers) { tier.token = ticks_of(Seconds(1e-6)); }
  const FleetRun slow = fleet.run(later);
  RC_ASSERT(tiered.end == unlimited.end);
  std::int64_t loaded = 0;
  for (std::size_t i = 0; i < load.requests.size(); ++i) {
    const Outcome &a = unlimited.outcomes[i], &b = tiered.outcomes[i];
    RC_ASSERT(a.cached == b.cached && a.first == b.first && a.last == b.last);
    RC_ASSERT(a.cached == slow.outcomes[i].cached);
  }
  for (const std::int64_t tokens : slow.engines[0].tier_tokens) { loaded += tokens; }
  const double delay = seconds_of(slow.end - tiered.end);
  RC_ASSERT(std::abs(delay - static_cast<double>(loaded) * 1e-6) <= 1e-9);
}

// By hand: a device of 6 blocks, prompts A, B, A of 4 blocks of 16 each and an output of one token (a fifth block; the
// last one of the prompt is shared as the others are). B needs 5 of 6 blocks: 3 of A's go to the tier, the tail first.
// A again finds all four: three blocks are loaded: 48 tokens and one latency.
TEST(Tiers, an_evicted_block_comes_back_at_the_rate_of_its_tier) {
  Workload load;
  load.block_tokens = 16;
  load.clients = 1;
  load.block_ids = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const std::uint32_t first : {0U, 4U, 0U}) {
    Request request;
    request.input = 64;
    request.output = 2;
    request.first_block = first;
    request.blocks = 4;
    load.requests.push_back(request);
  }
  TestFleet fleet;
  fleet.shape.blocks = 6;
  fleet.shape.tiers = {{1000, ticks_of(Seconds(1e-6)), ticks_of(Seconds(5e-6))}};
  const FleetRun run = fleet.run(load);
  EXPECT_EQ(run.outcomes[2].cached, 63);
  EXPECT_EQ(run.engines[0].tier_tokens[0], 48);
  EXPECT_NEAR(run.engines[0].tier_s[0], 53e-6, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[2].first - run.outcomes[2].scheduled), 53e-6 + 10e-3 + 100e-6, 1e-12);
}

}  // namespace orrery::serving::fleet_test
