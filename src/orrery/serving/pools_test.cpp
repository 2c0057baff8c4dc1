// Laws of pools of prefill and decode engines.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/request_times.hpp"
#include "orrery/serving/test_cases.hpp"
#include "orrery/serving/transfers.hpp"

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
  EXPECT_EQ(full.outcomes[1].first, full.outcomes[0].last + pools.options.transfer.latency);
}

// Parts of TTFT: the wait for a place is one of its own, before the prompt or after it.
TEST(Pools, the_wait_for_a_place_is_a_part_of_ttft) {
  for (const std::int64_t layers : {0, 10}) {
    Pools pools;
    pools.options.transfer.layers = layers;
    pools.decode.settings.max_sequences = 1;
    Workload load = load_of(2, 0.0, 100, 5, 1.0, 1);
    const FleetRun run = pools.run(load);
    const RequestTimes times = times_of(load.requests[1], run.outcomes[1], load.requests[1], run.outcomes[1], 0.0);
    EXPECT_NEAR(times.queue + times.place + times.prefill, times.ttft, 1e-12);
    const double asked = layers == 0 ? 30e-3 : 0.0;  // when both prompts are computed, or before
    EXPECT_NEAR(times.place, seconds_of(run.outcomes[0].last) - asked, 1e-12);
    EXPECT_NEAR(times.queue, 0.0, 1e-12);
  }
}

// With layers that are sent as they are computed the place comes first: the second prompt begins when the first request
// has ended, and takes 20 ms. A request of one token needs no place.
TEST(Pools, a_prompt_whose_layers_are_sent_waits_for_a_place) {
  Pools pools;
  pools.options.transfer.layers = 10;
  pools.decode.settings.max_sequences = 1;
  Workload load = load_of(3, 0.0, 100, 5, 1.0, 1);
  load.requests[2].output = 1;
  const FleetRun run = pools.run(load);
  EXPECT_EQ(run.outcomes[0].scheduled, 0);
  EXPECT_EQ(run.outcomes[1].scheduled, run.outcomes[0].last);
  EXPECT_NEAR(seconds_of(run.outcomes[1].first - run.outcomes[1].scheduled), 20e-3, 1e-12);
  EXPECT_EQ(run.outcomes[2].scheduled, 0);
}

// The decode engine's cache holds one request of 11 blocks, and that of the prefill engine two. The third prompt begins
// when the first is sent; the fourth when the second is, for which there is room when the first request has ended.
TEST(Pools, a_prefill_engine_holds_prompts_for_which_a_decode_engine_has_no_room) {
  Pools pools;
  pools.prefill.settings.block_tokens = pools.decode.settings.block_tokens = 10;
  pools.prefill.shape.blocks = 22;
  pools.decode.shape.blocks = 15;
  Workload load = load_of(4, 0.0, 100, 5, 1.0, 1);
  const FleetRun run = pools.run(load);
  EXPECT_EQ(run.outcomes[1].scheduled, 0);
  EXPECT_NEAR(seconds_of(run.outcomes[0].first), 30e-3, 1e-12);
  EXPECT_EQ(run.outcomes[2].scheduled, run.outcomes[0].first);
  EXPECT_EQ(run.outcomes[1].first, run.outcomes[0].last);
  EXPECT_EQ(run.outcomes[3].scheduled, run.outcomes[1].first);
}

// By hand: two prompts of 10 blocks of 10 tokens share the first 6. The second one comes when the first request has
// ended, and finds them on the decode engine: 40 of its tokens are sent, in 20 instead of 50 ms.
TEST(Pools, what_a_decode_engine_has_is_not_sent_again) {
  Pools pools;
  pools.prefill.settings.block_tokens = pools.decode.settings.block_tokens = 10;
  pools.options.transfer.token = ticks_of(Seconds(0.5e-3));
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1);
  load.block_tokens = 10;
  for (std::uint32_t i = 0; i < 20; ++i) { load.block_ids.push_back(i < 10 || i >= 16 ? i : i - 10); }
  load.requests[1].first_block = 10;
  for (Request& request : load.requests) { request.blocks = 10; }
  load.requests[1].arrival = ticks_of(Seconds(1.0));
  Workload again = load;
  const auto sent = [](const FleetRun& run) { return seconds_of(run.outcomes[1].first - run.outcomes[1].prefilled); };
  const FleetRun all = pools.run(load);
  EXPECT_NEAR(sent(all), 50e-3, 1e-12);
  EXPECT_EQ(all.outcomes[1].cached, 60);  // on the prefill engine
  pools.decode.shape.keeps_sent = true;
  const FleetRun rest = pools.run(again);
  EXPECT_NEAR(sent(rest), 20e-3, 1e-12);
  EXPECT_NEAR(all.transferred_s - rest.transferred_s, 30e-3, 1e-12);
}

// Prompts that wait for the same blocks at the same time hold their memory once, and each is sent whole: nobody has
// them.
TEST(Pools, prompts_on_their_way_share_memory) {
  Pools pools;
  pools.prefill.settings.block_tokens = pools.decode.settings.block_tokens = 10;
  pools.options.transfer.token = ticks_of(Seconds(0.5e-3));
  pools.decode.shape.keeps_sent = true;
  pools.decode.shape.blocks = 13;  // 10 that both share, and one for the answer of each
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1);
  load.block_tokens = 10;
  for (std::uint32_t i = 0; i < 10; ++i) { load.block_ids.push_back(i); }
  for (Request& request : load.requests) { request.blocks = 10; }
  const FleetRun run = pools.run(load);
  EXPECT_NEAR(run.transferred_s, 100e-3, 1e-12);
  EXPECT_LT(run.outcomes[1].first, run.outcomes[0].last + ticks_of(Seconds(50e-3)));
}

// SGLang's estimate counts what requests on their way will generate: of six, four fit, though there is room for all
// prompts.
TEST(Pools, requests_on_their_way_count_with_what_they_will_generate) {
  Pools pools;
  pools.options.transfer.latency = ticks_of(Seconds(1.0));
  pools.decode.settings.reserve = Reserve::estimate;
  pools.decode.settings.reserve_ratio = 0.5;
  pools.decode.settings.block_tokens = 1;
  pools.decode.shape.blocks = 850;  // 4 x (101 + 199 / 2) and less than 5 times that
  Workload load = load_of(6, 0.0, 100, 200, 1.0, 1);
  const FleetRun run = pools.run(load);
  std::int64_t soon = 0;
  for (const Outcome& outcome : run.outcomes) { soon += outcome.first < ticks_of(Seconds(1.5)) ? 1 : 0; }
  EXPECT_EQ(soon, 4);
}

// By hand: two prompts of 100 tokens in one iteration of 30 ms, each sent in 10 ms: one after the other by one link of
// an engine, at the same time by two links, or by two engines, whose iterations take 20 ms.
TEST(Pools, transfers_over_one_link_queue) {
  Pools pools;
  pools.options.routing = Routing::round_robin;
  pools.options.transfer.token = ticks_of(Seconds(0.1e-3));
  pools.options.transfer.receives = 2;
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1), again = load, links = load;
  const FleetRun one = pools.run(load);
  EXPECT_NEAR(seconds_of(one.outcomes[0].first), 40e-3, 1e-12);
  // The second one has come at 50 ms, in the first iteration of the first one: one token, 10.1 ms.
  EXPECT_NEAR(seconds_of(one.outcomes[1].first), 40e-3 + 10.1e-3, 1e-12);
  pools.prefill.replicas = 2;
  const FleetRun two = pools.run(again);
  EXPECT_NEAR(seconds_of(two.outcomes[0].first), 30e-3, 1e-12);
  EXPECT_EQ(two.outcomes[1].first, two.outcomes[0].first);
  pools.prefill.replicas = 1;
  pools.options.transfer.sends = 2;
  const FleetRun both = pools.run(links);
  EXPECT_NEAR(seconds_of(both.outcomes[0].first), 40e-3, 1e-12);
  EXPECT_EQ(both.outcomes[1].first, both.outcomes[0].first);
  EXPECT_NEAR(both.transferred_s, 20e-3, 1e-12);
}

// By hand: two prefill engines end their prompts at 20 ms, and each transfer takes 10 ms. The one link of a decode
// engine receives one after the other; two decode engines, each in turn, receive both at the same time.
TEST(Pools, transfers_to_one_link_queue) {
  Pools pools;
  pools.options.routing = Routing::round_robin;
  pools.options.transfer.token = ticks_of(Seconds(0.1e-3));
  pools.prefill.replicas = 2;
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1), again = load;
  const FleetRun one = pools.run(load);
  EXPECT_NEAR(seconds_of(one.outcomes[0].first), 30e-3, 1e-12);
  // The second one has come at 40 ms, within the first iteration of the first one.
  EXPECT_NEAR(seconds_of(one.outcomes[1].first), 30e-3 + 10.1e-3, 1e-12);
  pools.decode.replicas = 2;
  const FleetRun two = pools.run(again);
  EXPECT_NEAR(seconds_of(two.outcomes[1].first), 30e-3, 1e-12);
}

// By hand: the cache of the prefill engine holds one prompt of 100 tokens, which takes 20 ms and is sent in 50 ms. The
// second one starts when the first is sent, at 70 ms.
TEST(Pools, a_prefill_engine_holds_blocks_until_they_are_sent) {
  Pools pools;
  pools.options.transfer.token = ticks_of(Seconds(0.5e-3));
  pools.prefill.settings.block_tokens = 10;
  pools.prefill.shape.blocks = 15;
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1), again = load;
  load.requests[0].output = 2;  // ends while the second prompt is computed
  const FleetRun scarce = pools.run(load);
  EXPECT_NEAR(seconds_of(scarce.outcomes[1].scheduled), 70e-3, 1e-12);
  EXPECT_NEAR(seconds_of(scarce.outcomes[1].first), 140e-3, 1e-12);
  pools.prefill.shape.blocks = 22;
  const FleetRun enough = pools.run(again);
  EXPECT_EQ(enough.outcomes[1].scheduled, 0);
}

// By hand: a cache of 15 blocks of 10 tokens holds a prompt of 100 tokens and its first token, though not the 200
// tokens that the decode engine generates; a prefill engine that reserves whole requests reserves what it computes.
TEST(Pools, a_prefill_engine_reserves_no_answers) {
  Pools pools;
  pools.prefill.settings.reserve = Reserve::whole;
  pools.prefill.settings.block_tokens = 10;
  pools.prefill.shape.blocks = 15;
  Workload load = load_of(2, 0.0, 100, 200, 1.0, 1);
  const FleetRun run = pools.run(load);
  EXPECT_TRUE(run.outcomes[0].done() && run.outcomes[1].done());
}

// An iteration has a token for one sequence: the second request joins when the first has ended, though it has a place.
TEST(Pools, a_request_joins_when_the_budget_has_a_token_for_it) {
  Pools pools;
  pools.decode.settings.max_batched_tokens = 1;
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1);
  const FleetRun run = pools.run(load);
  EXPECT_NEAR(seconds_of(run.outcomes[0].first), 30e-3, 1e-12);
  EXPECT_EQ(run.outcomes[1].first, run.outcomes[0].last);
}

// A prompt whose answer is one token need not fit in a decode engine.
TEST(Pools, an_answer_of_one_token_needs_no_place) {
  Pools pools;
  pools.decode.shape.blocks = 2;
  Workload load = load_of(2, 0.0, 100, 1, 1.0, 1);
  const FleetRun run = pools.run(load);
  EXPECT_TRUE(run.outcomes[0].done() && run.outcomes[1].done());
  EXPECT_EQ(run.transferred_s, 0.0);
}

// Requests ask for places, of which one is free every 0.5 s: those that are predicted to wait longer than 1 s are
// refused. The wait is not known before the first places were taken.
TEST(Pools, admission_predicts_the_wait_for_a_place) {
  for (const std::int64_t layers : {0, 10}) {
    Pools pools;
    pools.options.transfer.layers = layers;
    pools.decode.settings.max_sequences = 1;
    pools.options.admission.wait = ticks_of(Seconds(1.0));
    Workload load = load_of(400, 8.0, 10, 50, 1.0, 1);
    const FleetRun run = pools.run(load);
    EXPECT_GT(run.refused, 200);
    double wait = 0;
    for (std::size_t i = 100; i < run.outcomes.size(); ++i) {
      const Outcome& outcome = run.outcomes[i];
      if (!outcome.refused) { wait = std::max(wait, seconds_of(outcome.first - load.requests[i].arrival)); }
    }
    EXPECT_GT(wait, 0.5);
    EXPECT_LT(wait, 2.5);
  }
}

// With swapping, nothing is copied back from the host for a request that comes from another engine; it joins the next
// step, however seldom the engine looks for new ones.
TEST(Pools, a_request_from_a_prefill_engine_joins_the_next_step_at_no_cost) {
  const auto end_with = [](std::int64_t interval, Preemption preemption) {
    Pools pools;
    pools.decode.settings.poll_interval = interval;
    pools.decode.settings.preemption = preemption;
    pools.decode.shape.swap_token = preemption == Preemption::swap ? ticks_of(Seconds(1e-3)) : 0;
    Workload load = load_of(20, 50.0, 100, 40, 0.5, 3);
    return pools.run(load).end;
  };
  const Ticks plain = end_with(1, Preemption::recompute);
  EXPECT_EQ(end_with(50, Preemption::recompute), plain);
  EXPECT_EQ(end_with(1, Preemption::swap), plain);
}

// At most as many transfers at once as an engine has links, each as long as its bytes take, none before its prompt has
// begun (layer by layer) or ended; with a link for each request, as if it was alone.
RC_GTEST_PROP(Transfers, take_links_of_both_engines, ()) {
  TransferPolicy policy{*rc::gen::element<Ticks>(0, 7), *rc::gen::inRange<Ticks>(1, 20),
                        *rc::gen::element<std::int64_t>(0, 4), *rc::gen::inRange<std::int64_t>(1, 4),
                        *rc::gen::inRange<std::int64_t>(1, 4)};
  TransferPolicy many = policy;
  many.sends = many.receives = 64;
  Transfers some(policy, 3, 2), free(many, 3, 2);
  struct Sent {
    Ticks first, time, end;  // first: when it may begin
    std::size_t from, to;
  };
  std::vector<Sent> all;
  Ticks now = 0, whole = 0;
  const auto count = *rc::gen::inRange<std::int64_t>(1, 40);
  for (std::int64_t i = 0; i < count; ++i) {
    now += *rc::gen::inRange<Ticks>(0, 60);
    const auto tokens = *rc::gen::inRange<std::int64_t>(1, 20);
    const auto from = *rc::gen::inRange<std::size_t>(0, 3), to = *rc::gen::inRange<std::size_t>(0, 2);
    const Ticks began = std::max<Ticks>(0, now - *rc::gen::inRange<Ticks>(0, 200)), time = tokens * policy.token;
    const Ticks end = some.begin(i, tokens, from, to, began, now) - policy.latency;
    const Ticks alone = policy.layers > 0 ? std::max(began + time, now + time / policy.layers) : now + time;
    RC_ASSERT(end >= alone);
    RC_ASSERT(free.begin(i, tokens, from, to, began, now) - policy.latency == alone);
    all.push_back({policy.layers > 0 ? began : now, time, end, from, to});
    whole += time;
  }
  RC_ASSERT(some.busy() == whole);
  for (const Sent& one : all) {  // just after it begins, if it does not wait for layers; and until it ends
    std::int64_t sends = 0, receives = 0;
    Ticks sent = 0, received = 0, first = one.first;
    for (const Sent& other : all) {
      const bool is_on = other.end - other.time <= one.end - one.time && one.end - one.time < other.end;
      sends += is_on && other.from == one.from ? 1 : 0;
      receives += is_on && other.to == one.to ? 1 : 0;
      first = std::min(first, other.first);
      sent += other.end <= one.end && other.from == one.from ? other.time : 0;
      received += other.end <= one.end && other.to == one.to ? other.time : 0;
    }
    if (policy.layers == 0) { RC_ASSERT(sends <= policy.sends && receives <= policy.receives); }
    RC_ASSERT(sent <= policy.sends * (one.end - first) && received <= policy.receives * (one.end - first));
  }
  Ticks before = 0;
  while (some.next() != kNever) {
    const Transfer next = some.take();
    RC_ASSERT(next.at >= before);
    before = next.at;
  }
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

// By hand: two prompts of one iteration of 30 ms, each sent in 10 ms over one link of their engine to engines of their
// own: their layers alternate, and their last ones, 1 ms each, follow each other.
TEST(Pools, layers_of_prompts_of_one_iteration_alternate) {
  Pools pools;
  pools.options.transfer.token = ticks_of(Seconds(0.1e-3));
  pools.options.transfer.layers = 10;
  pools.options.routing = Routing::round_robin;
  pools.decode.replicas = 2;
  Workload load = load_of(2, 0.0, 100, 5, 1.0, 1);
  const FleetRun run = pools.run(load);
  EXPECT_NEAR(seconds_of(run.outcomes[0].first), 31e-3, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[1].first), 32e-3, 1e-12);
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
