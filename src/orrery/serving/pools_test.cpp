// Laws of pools of prefill and decode engines.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::pools_test {

using engine_test::load_of;
using engine_test::Pools;
using engine_test::random_case;
using engine_test::random_pools;
using engine_test::RandomCase;

// Two prompts of 100 tokens in one iteration of 10 ms + 200 x 100 us; handshakes of 2 ms at the same time.
TEST(Pools, a_first_token_waits_for_a_place_on_the_decode_engine) {
  Pools pools;
  pools.options.transfer.latency = ticks_of(Seconds(2e-3));
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1), again = load;
  const FleetRun free = pools.run(load);
  EXPECT_NEAR(seconds_of(free.outcomes[0].first), 32e-3, 1e-12);
  EXPECT_EQ(free.outcomes[1].first, free.outcomes[0].first);
  pools.decode.settings.max_sequences = 1;
  const FleetRun full = pools.run(again);
  EXPECT_EQ(full.outcomes[0].first, free.outcomes[0].first);
  EXPECT_EQ(full.outcomes[1].first, full.outcomes[0].last);
}

// By hand: two prompts of 100 tokens in one iteration of 30 ms, each sent in 10 ms: one after the other by one engine,
// at the same time by two, whose iterations take 20 ms.
TEST(Pools, transfers_of_one_engine_queue) {
  Pools pools;
  pools.options.routing = Routing::round_robin;
  pools.options.transfer.token = ticks_of(Seconds(0.1e-3));
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1), again = load;
  const FleetRun one = pools.run(load);
  EXPECT_NEAR(seconds_of(one.outcomes[0].first), 40e-3, 1e-12);
  // The second one has come at 50 ms, in the first iteration of the first one: one token, 10.1 ms.
  EXPECT_NEAR(seconds_of(one.outcomes[1].first), 40e-3 + 10.1e-3, 1e-12);
  EXPECT_NEAR(one.transfer_s, 10e-3 + 20e-3, 1e-12);
  pools.prefill.replicas = 2;
  const FleetRun two = pools.run(again);
  EXPECT_NEAR(seconds_of(two.outcomes[0].first), 30e-3, 1e-12);
  EXPECT_EQ(two.outcomes[1].first, two.outcomes[0].first);
}

// By hand: a prompt takes 20 ms. Layer by layer (10 of them), a transfer of 10 ms leaves its last layer, 1 ms; one of
// 50 ms leaves what does not fit under the prompt, 30 ms; after the prompt it takes 50 ms.
TEST(Pools, layers_are_sent_under_the_prompt) {
  const auto first_token = [](double token, std::int64_t layers) {
    Pools pools;
    pools.options.transfer.token = ticks_of(Seconds(token));
    pools.options.transfer.layers = layers;
    Workload load = load_of(1, 0.0, 100, 5, 1.0, 1);
    return seconds_of(pools.run(load).outcomes[0].first);
  };
  EXPECT_NEAR(first_token(0.1e-3, 10), 21e-3, 1e-12);
  EXPECT_NEAR(first_token(0.5e-3, 10), 50e-3, 1e-12);
  EXPECT_NEAR(first_token(0.5e-3, 0), 70e-3, 1e-12);
}

// Each engine in turn, whatever runs there: the third request goes to the first engine, which is busy, though the
// second has ended a shorter one.
TEST(Pools, in_turn_a_request_waits_though_another_engine_is_idle) {
  Pools pools;
  pools.decode.replicas = 2;
  pools.decode.settings.max_sequences = 1;
  Workload load = load_of(3, 0.0, 10, 50, 1.0, 1), again = load;
  load.requests[1].output = again.requests[1].output = 2;
  pools.options.routing = Routing::round_robin;
  const FleetRun in_turn = pools.run(load);
  EXPECT_EQ(in_turn.outcomes[2].engine, in_turn.outcomes[0].engine);
  EXPECT_EQ(in_turn.outcomes[2].first, in_turn.outcomes[0].last);
  pools.options.signal_age = 0;
  pools.options.routing = Routing::least_outstanding;
  const FleetRun balanced = pools.run(again);
  EXPECT_LE(balanced.outcomes[2].first, in_turn.outcomes[2].first);
}

RC_GTEST_PROP(Pools, aggregated_runs_equal_stepped_ones_and_tokens_are_conserved, ()) {
  RandomCase c = random_case();
  Pools pools = random_pools(c);
  Workload again = c.load;
  const FleetRun jumps = pools.run(c.load);
  pools.prefill.shape.jumps = pools.decode.shape.jumps = Jumps::stepped;
  const FleetRun steps = pools.run(again);
  RC_ASSERT(jumps.end == steps.end);
  std::int64_t outputs = 0, generated = 0;
  for (std::size_t i = 0; i < jumps.outcomes.size(); ++i) {
    const Outcome &a = jumps.outcomes[i], &b = steps.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last);
    RC_ASSERT(a.done() && c.load.requests[i].arrival <= a.scheduled && a.scheduled < a.first && a.first <= a.last);
    outputs += c.load.requests[i].output;
  }
  for (const EngineTotals& totals : jumps.engines) { generated += totals.generated; }
  RC_ASSERT(generated == outputs);
}

}  // namespace orrery::serving::pools_test
