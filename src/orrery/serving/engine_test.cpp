// Laws of one engine: conservation, FCFS, aggregated runs, queueing theory.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/serving/load.hpp"
#include "orrery/serving/summary.hpp"
#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::engine_test {

Workload load_of(std::int64_t requests, double rate, std::int64_t input, std::int64_t output, double range,
                 std::uint64_t seed) {
  LoadOptions options;
  options.requests = requests;
  options.rate = rate;
  options.input = input;
  options.output = output;
  options.range = range;
  options.seed = seed;
  return generated(options);
}

std::vector<StationOptions> random_stations() {
  std::vector<StationOptions> list;
  for (std::int64_t stages = *rc::gen::element<std::int64_t>(0, 0, 2); stages > 0; --stages) {
    StationOptions station;
    station.servers = *rc::gen::element<std::int64_t>(0, 1, 3);
    station.batch = *rc::gen::element<std::int64_t>(1, 4);
    station.fixed = *rc::gen::element<Ticks>(0, ticks_of(Seconds(5e-3)));
    station.shared = *rc::gen::element<Ticks>(0, ticks_of(Seconds(2e-3)));
    station.compute = *rc::gen::element<Ticks>(0, ticks_of(Seconds(3e-3)));
    station.place = *rc::gen::element(StagePlace::before_prefill, StagePlace::after_answer, StagePlace::between_turns);
    station.fixed_cv = *rc::gen::element(0.0, 1.5);
    if (*rc::gen::element(false, false, true)) {
      station.place = StagePlace::before_prefill;
      station.store = {0.5, std::nullopt, Seconds(*rc::gen::element(0.0, 1e-5))};
      if (*rc::gen::arbitrary<bool>()) { station.store->prefix_tokens = *rc::gen::inRange<std::int64_t>(1, 300); }
    }
    list.push_back(station);
  }
  return list;
}

RandomCase random_case(std::int64_t branches) {
  RandomCase c;
  LoadOptions options;
  options.requests = *rc::gen::inRange<std::int64_t>(1, 60);
  options.rate = *rc::gen::element(0.0, 1.0, 20.0, 200.0);
  options.cv = *rc::gen::element(1.0, 3.0);
  options.input = *rc::gen::inRange<std::int64_t>(1, 300);
  options.output = *rc::gen::inRange<std::int64_t>(1, 120);
  options.range = *rc::gen::element(0.01, 0.5, 1.0);
  options.seed = *rc::gen::arbitrary<std::uint32_t>();
  options.clients = *rc::gen::element<std::int64_t>(0, 0, 7);
  options.turns = *rc::gen::element<std::int64_t>(1, 1, 3);
  options.turn_input = 7;
  options.think = Seconds(*rc::gen::element(0.0, 0.05));
  if (*rc::gen::arbitrary<bool>()) {
    options.prefix_groups = 3;
    options.prefix_tokens = 96;
  }
  options.branches = options.join = branches;
  c.load = generated(options);
  auto& s = c.fleet.settings;
  s.scheduler = *rc::gen::element(Scheduler::mixed, Scheduler::prefill_first);
  s.reserve = *rc::gen::element(Reserve::chunk, Reserve::prompt, Reserve::estimate, Reserve::whole);
  s.reserve_ratio = 0.2;
  s.policy = *rc::gen::element(Policy::fcfs, Policy::priority);
  s.preemption = *rc::gen::element(Preemption::recompute, Preemption::swap);
  s.block_tokens = *rc::gen::element<std::int64_t>(1, 4, 16);
  s.max_sequences = *rc::gen::inRange<std::int64_t>(1, 20);
  s.max_batched_tokens = *rc::gen::element<std::int64_t>(32, 100, 1000);
  s.chunked_prefill = *rc::gen::arbitrary<bool>();
  s.poll_interval = *rc::gen::element<std::int64_t>(1, 1, 3, 10);
  s.balance_wait = *rc::gen::element<std::int64_t>(0, 0, 5);
  s.batch_wait = *rc::gen::element<std::int64_t>(0, 0, 7);
  s.batch_wait_part = 0.8;
  s.long_prefill_threshold = *rc::gen::element<std::int64_t>(0, 24);
  const std::int64_t later = (options.turns - 1) * (options.output + options.turn_input);
  const std::int64_t longest = options.input + options.output + later + 2 * s.block_tokens;
  c.fleet.shape.blocks = (longest * *rc::gen::inRange<std::int64_t>(1, 4)) / s.block_tokens + 4;
  if (*rc::gen::arbitrary<bool>()) {
    c.fleet.shape.windows = {*rc::gen::inRange<std::int64_t>(1, 7), *rc::gen::inRange<std::int64_t>(1, 6)};
    c.fleet.shape.blocks += c.fleet.shape.windows.groups * c.fleet.shape.windows.most;
  }
  for (std::int64_t tiers = *rc::gen::element<std::int64_t>(0, 1, 2); tiers > 0; --tiers) {
    c.fleet.shape.tiers.push_back({*rc::gen::element<std::int64_t>(0, 40, 1000, 1'000'000),
                                   *rc::gen::element<Ticks>(0, 5000, ticks_of(Seconds(0.5e-3))),
                                   *rc::gen::element<Ticks>(0, 100'000, ticks_of(Seconds(30e-3)))});
  }
  if (c.fleet.shape.tiers.size() == kTiers && *rc::gen::arbitrary<bool>()) {
    c.fleet.shape.tiers.back().tokens = 0;
    c.fleet.options.store_tokens = *rc::gen::element<std::int64_t>(40, 300, 1000, 1'000'000);
    c.fleet.options.store_token = *rc::gen::element<Ticks>(0, 5000, ticks_of(Seconds(0.2e-3)));
  }
  c.fleet.shape.ranks = *rc::gen::element<std::int64_t>(1, 1, 3);
  c.fleet.shape.blocks *= c.fleet.shape.ranks;  // each request has room on one rank
  c.fleet.shape.prompt_host = *rc::gen::element<Ticks>(0, 0, ticks_of(Seconds(20e-6)));
  c.fleet.shape.token_host = *rc::gen::element<Ticks>(0, ticks_of(Seconds(1e-3)), ticks_of(Seconds(20e-3)));
  c.fleet.shape.swap_token = s.preemption == Preemption::swap ? 1000 : 0;
  c.fleet.price.line = *rc::gen::element<std::int64_t>(50, 1000, 1 << 20);
  c.fleet.replicas = *rc::gen::element<std::int64_t>(1, 3);
  c.fleet.options.stations = random_stations();
  if (*rc::gen::element(false, false, true)) {
    c.fleet.autoscale = {1, *rc::gen::element(0.5, 4.0), ticks_of(Seconds(*rc::gen::element(0.01, 0.3))),
                         ticks_of(Seconds(*rc::gen::element(0.0, 0.2))),
                         ticks_of(Seconds(*rc::gen::element(0.0, 0.5)))};
    c.fleet.autoscale.signal = *rc::gen::element(ScaleSignal::requests, ScaleSignal::queue, ScaleSignal::kv);
    if (c.fleet.autoscale.signal == ScaleSignal::kv) { c.fleet.autoscale.target /= 8.0; }
  }
  return c;
}

Pools random_pools(const RandomCase& c) {
  Pools pools;
  pools.prefill = c.fleet;
  pools.decode = c.fleet;
  pools.prefill.shape.token_host = 0;  // its tokens are sent by the decode engine
  pools.prefill.autoscale.signal = *rc::gen::element(ScaleSignal::requests, ScaleSignal::queue, ScaleSignal::kv);
  pools.prefill.replicas = *rc::gen::element<std::int64_t>(1, 2);
  pools.decode.settings.max_sequences = *rc::gen::inRange<std::int64_t>(1, 10);
  pools.options = c.fleet.options;
  pools.options.routing = *rc::gen::element(Routing::round_robin, Routing::random, Routing::least_outstanding);
  pools.options.transfer.token = *rc::gen::element<Ticks>(0, 10'000);
  pools.options.transfer.latency = *rc::gen::element<Ticks>(0, 1'000'000'000);
  pools.options.transfer.layers = *rc::gen::element<std::int64_t>(0, 4);
  pools.options.transfer.sends = *rc::gen::element<std::int64_t>(1, 3);
  pools.options.transfer.receives = *rc::gen::element<std::int64_t>(1, 3);
  pools.decode.shape.keeps_sent = *rc::gen::arbitrary<bool>();
  return pools;
}

RC_GTEST_PROP(Engine, aggregated_runs_equal_stepped_ones_bit_for_bit, ()) {
  RandomCase c = random_case();
  if (c.load.clients == 0 && *rc::gen::element(false, false, true)) {
    c.fleet.options.admission.wait = ticks_of(Seconds(*rc::gen::element(0.0, 0.1, 1.0)));
    c.fleet.options.admission.period = *rc::gen::element<Ticks>(0, ticks_of(Seconds(0.03)));
  }
  Workload again = c.load;
  const FleetRun jumps = c.fleet.run(c.load);
  c.fleet.shape.jumps = Jumps::stepped;
  const FleetRun steps = c.fleet.run(again);
  RC_ASSERT(jumps.end == steps.end);
  for (std::size_t i = 0; i < jumps.outcomes.size(); ++i) {
    const Outcome &a = jumps.outcomes[i], &b = steps.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last);
    RC_ASSERT(a.preemptions == b.preemptions && a.cached == b.cached && a.recomputed == b.recomputed);
  }
  for (std::size_t i = 0; i < jumps.engines.size(); ++i) {
    RC_ASSERT(jumps.engines[i].iterations == steps.engines[i].iterations);
    RC_ASSERT(jumps.engines[i].peak_blocks == steps.engines[i].peak_blocks);
  }
}

// Generated: all outputs. Prefilled: prompts less hits, and what preemptions have thrown away but for hits again.
RC_GTEST_PROP(Engine, tokens_and_requests_are_conserved_and_times_are_ordered, ()) {
  RandomCase c = random_case();
  const FleetRun run = c.fleet.run(c.load);
  std::int64_t generated = 0, prefilled = 0, outputs = 0, prompts = 0, recomputed = 0;
  for (const EngineTotals& totals : run.engines) {
    generated += totals.generated;
    prefilled += totals.prefilled;
    RC_ASSERT(totals.peak_blocks <= c.fleet.shape.blocks);
  }
  std::int64_t preempted = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    const Request& request = c.load.requests[i];
    const Outcome& outcome = run.outcomes[i];
    RC_ASSERT(request.arrival <= outcome.scheduled && outcome.scheduled < outcome.first);
    RC_ASSERT(outcome.first <= outcome.last && outcome.last <= outcome.answered && outcome.answered <= run.end);
    RC_ASSERT((request.output == 1) == (outcome.first == outcome.last));
    outputs += request.output;
    prompts += request.input - outcome.cached;
    recomputed += outcome.recomputed;
    preempted += outcome.preemptions;
  }
  RC_ASSERT(generated == outputs);
  if (preempted == 0) { RC_ASSERT(prefilled == prompts); }
  if (preempted > 0 && c.fleet.settings.preemption == Preemption::recompute && c.load.block_ids.empty()) {
    // After a preemption the last generated token is computed too, which a decode step would have computed.
    RC_ASSERT(prefilled >= prompts && prefilled <= prompts + recomputed + preempted);
  }
  if (c.fleet.settings.reserve == Reserve::whole) { RC_ASSERT(preempted == 0); }
}

// Two prompts of 1,024 tokens in parts of 64, the first in a cache of 72 blocks of 16 when the second, more urgent one
// comes: the first leaves in the middle, and both end.
TEST(Engine, a_prompt_that_leaves_in_the_middle_does_not_stop_a_more_urgent_one) {
  for (const std::int64_t blocks : {68, 70, 72, 74, 80}) {
    TestFleet fleet;
    fleet.settings.policy = Policy::priority;
    fleet.settings.long_prefill_threshold = 64;
    fleet.shape.blocks = blocks;
    Workload load = load_of(2, 0.0, 1024, 4, 1.0, 1);
    load.requests[0].priority = 1;
    load.requests[1].arrival = ticks_of(Seconds(0.05));
    const FleetRun run = fleet.run(load);
    EXPECT_LT(run.outcomes[1].last, run.outcomes[0].last) << blocks;
    EXPECT_GT(run.outcomes[0].preemptions, 0) << blocks;
    EXPECT_EQ(run.outcomes[1].preemptions, 0) << blocks;
  }
}

// By hand: two equal prompts of 64 tokens in parts of 16, 11.6 ms each. The second comes in the first iteration and
// starts in the second one, in which the first computes its second block: it finds two blocks, and computes the others.
TEST(Engine, a_prefix_is_found_as_far_as_it_is_computed) {
  TestFleet fleet;
  fleet.settings.long_prefill_threshold = 16;
  Workload load = load_of(2, 0.0, 64, 2, 1.0, 1);
  load.block_tokens = 16;
  for (Request& request : load.requests) {
    request.first_block = static_cast<std::uint32_t>(load.block_ids.size());
    request.blocks = 4;
    for (std::uint32_t i = 0; i < 4; ++i) { load.block_ids.push_back(i); }
  }
  load.requests[1].arrival = ticks_of(Seconds(5e-3));
  const FleetRun run = fleet.run(load);
  EXPECT_NEAR(seconds_of(run.outcomes[1].scheduled), 11.6e-3, 1e-12);
  EXPECT_EQ(run.outcomes[1].cached, 32);
  EXPECT_EQ(run.engines[0].prefilled, 64 + 32);
}

// Blocks of 1,000 tokens take 63 blocks of 16: five of them do not fit in 320 blocks, though 5,010 tokens would.
TEST(Engine, whole_blocks_of_a_trace_take_whole_blocks_of_the_engine) {
  TestFleet fleet;
  Workload load = load_of(1, 0.0, 5000, 10, 1.0, 1);
  load.block_tokens = 1000;
  load.requests[0].blocks = 5;
  load.block_ids = {0, 1, 2, 3, 4};
  const auto blocks_suffice = [&](std::int64_t blocks) {
    fleet.shape.blocks = blocks;
    Workload one = load;
    return run_fleet(one, {Pool{&fleet.settings, fleet.shape, &fleet.price, 1, {}}}, {}).has_value();
  };
  EXPECT_FALSE(blocks_suffice(316));
  EXPECT_TRUE(blocks_suffice(317));
}

// Requests that come after a pause of an hour find an idle engine: none is predicted to wait.
TEST(Engine, a_predicted_wait_does_not_count_idle_time) {
  TestFleet fleet;
  fleet.settings.max_sequences = 1;
  fleet.options.admission.wait = ticks_of(Seconds(1.0));
  Workload load = load_of(24, 0.0, 100, 2, 1.0, 1);
  for (std::size_t i = 0; i < 24; ++i) {
    const double at = 0.5 * static_cast<double>(i);
    load.requests[i].arrival = ticks_of(Seconds(i < 18 ? at : 3600.0 + 1e-3 * at));
  }
  EXPECT_EQ(fleet.run(load).refused, 0);
}

RC_GTEST_PROP(Engine, never_preempted_requests_of_one_engine_start_in_the_order_of_arrival, ()) {
  RandomCase c = random_case();
  c.fleet.settings.policy = Policy::fcfs;
  c.fleet.replicas = 1;
  c.fleet.options.stations.clear();  // a small batch may overtake a large one on another server
  c.fleet.shape.tiers.clear();       // a request may overtake one that waits for blocks
  const FleetRun run = c.fleet.run(c.load);
  std::vector<std::size_t> order(run.outcomes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return c.load.requests[a].arrival < c.load.requests[b].arrival;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    RC_ASSERT(run.outcomes[order[i - 1]].scheduled <= run.outcomes[order[i]].scheduled);
  }
}

RC_GTEST_PROP(Engine, littles_law_holds_exactly_on_a_whole_run, ()) {
  RandomCase c = random_case();
  const FleetRun run = c.fleet.run(c.load);
  double sojourn = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    sojourn += seconds_of(run.outcomes[i].answered - c.load.requests[i].arrival);
  }
  RC_ASSERT(std::abs(run.system_integral - sojourn) <= 1e-9 * sojourn);
}

RC_GTEST_PROP(Engine, a_turn_arrives_a_think_time_after_the_answer_before_it, ()) {
  RandomCase c = random_case();
  RC_PRE(!c.load.following.empty());
  const FleetRun run = c.fleet.run(c.load);
  for (std::size_t i = 1; i < run.outcomes.size(); ++i) {
    const Request &before = c.load.requests[i - 1], &request = c.load.requests[i];
    if (c.load.following[i].waits_for == 0) { continue; }
    Ticks between = 0;
    for (std::size_t k = 0; k < run.stations.size(); ++k) {
      const bool is_between = c.fleet.options.stations[k].place == StagePlace::between_turns;
      between += is_between ? run.stations[k].times[i - 1] : 0;
    }
    RC_ASSERT(request.arrival == run.outcomes[i - 1].answered + between + c.load.think + 1);
    RC_ASSERT(request.session == before.session && request.input > before.input + before.output);
  }
}

// A session of one turn is a plain request; in sessions, the first turns are the same requests.
TEST(Load, the_first_turns_of_sessions_are_the_plain_requests) {
  LoadOptions options;
  options.requests = 50;
  options.rate = 10.0;
  options.input = 200;
  options.output = 40;
  options.range = 0.3;
  const Workload plain = generated(options);
  options.turns = 4;
  options.turn_input = 30;
  options.requests = 200;
  const Workload sessions = generated(options);
  ASSERT_EQ(sessions.requests.size(), 200U);
  for (std::size_t i = 0; i < plain.requests.size(); ++i) {
    EXPECT_EQ(plain.requests[i].arrival, sessions.requests[4 * i].arrival);
    EXPECT_EQ(plain.requests[i].input, sessions.requests[4 * i].input);
    EXPECT_EQ(plain.requests[i].output, sessions.requests[4 * i].output);
  }
}

// Alone on an engine, a turn of 64 + 16 + 32 tokens after one of 64 finds the 4 blocks of 16 of that prompt.
TEST(Load, a_later_turn_finds_the_prompt_before_it_in_the_cache) {
  LoadOptions options;
  options.requests = 3;
  options.input = 64;
  options.output = 16;
  options.turns = 3;
  options.turn_input = 32;
  Workload load = generated(options);
  TestFleet fleet;
  fleet.settings.prefix_cache = true;
  const FleetRun run = fleet.run(load);
  EXPECT_EQ(load.requests[2].input, 64 + 2 * (16 + 32));
  EXPECT_EQ(run.outcomes[0].cached, 0);
  EXPECT_EQ(run.outcomes[1].cached, 64);
  EXPECT_EQ(run.outcomes[2].cached, 112);
}

// One sequence at a time with one output token is a single server: Wq = rho s / (2 (1 - rho)) for fixed prompts
// (M/D/1); lambda E[S^2] / (2 (1 - rho)) for random ones (Pollaczek-Khinchine). Standard error by batches.
struct Waits {
  double mean, error, idle;  // idle: part of the requests that do not wait
};
Waits waits_of(const Workload& load, const FleetRun& run) {
  constexpr std::size_t kBatches = 40;
  const std::size_t count = load.requests.size(), size = count / kBatches;
  std::vector<double> means(kBatches);
  double idle = 0;
  for (std::size_t i = 0; i < size * kBatches; ++i) {
    const double wait = seconds_of(run.outcomes[i].scheduled - load.requests[i].arrival);
    means[i / size] += wait / static_cast<double>(size);
    idle += wait == 0.0 ? 1.0 : 0.0;
  }
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / kBatches;
  double variance = 0;
  for (const double m : means) { variance += (m - mean) * (m - mean); }
  return {mean, std::sqrt(variance / (kBatches - 1) / kBatches), idle / static_cast<double>(size * kBatches)};
}

TEST(Queueing, fixed_prompts_wait_as_in_m_d_1) {
  TestFleet fleet;
  fleet.settings.max_sequences = 1;
  const double service = 10e-3 + 100 * 100e-6, rho = 0.7;  // 20 ms
  Workload load = load_of(test::cases(200'000), rho / service, 100, 1, 1.0, 7);
  const Waits waits = waits_of(load, fleet.run(load));
  EXPECT_NEAR(waits.mean, rho * service / (2 * (1 - rho)), 3 * waits.error);
  EXPECT_NEAR(waits.idle, 1 - rho, 0.02);
}

TEST(Queueing, random_prompts_wait_as_pollaczek_and_khinchine_say) {
  TestFleet fleet;
  fleet.settings.max_sequences = 1;
  // Prompts of 1 to 300 tokens: S = 10 ms + 0.1 ms n.
  double mean = 0, square = 0;
  for (int n = 1; n <= 300; ++n) {
    const double s = 10e-3 + 100e-6 * n;
    mean += s / 300;
    square += s * s / 300;
  }
  const double rho = 0.6, rate = rho / mean;
  Workload load = load_of(test::cases(200'000), rate, 300, 1, 0.001, 11);
  const Waits waits = waits_of(load, fleet.run(load));
  EXPECT_NEAR(waits.mean, rate * square / (2 * (1 - rho)), 3 * waits.error);
}

// N clients without think time: in a whole run, N x time = sum of sojourns but for the clients that have no more
// requests at the end. With equal requests in lock step it is exact.
TEST(Queueing, a_closed_loop_keeps_its_clients_busy) {
  TestFleet fleet;
  LoadOptions options;
  options.requests = 640;
  options.clients = 16;
  options.input = 50;
  options.output = 40;
  Workload load = generated(options);
  const FleetRun run = fleet.run(load);
  double sojourn = 0;
  for (std::size_t i = 0; i < load.requests.size(); ++i) {
    sojourn += seconds_of(run.outcomes[i].last - load.requests[i].arrival);
  }
  EXPECT_NEAR(sojourn, 16 * seconds_of(run.end), 1e-9 * sojourn);
  EXPECT_EQ(run.most_in_system, 16);
}

// One request: chunks of 100 of 250 tokens are 3 iterations; then 9 decode steps at contexts 251 to 259.
TEST(Engine, an_unloaded_request_takes_its_chunks_and_its_tokens) {
  TestFleet fleet;
  fleet.settings.max_batched_tokens = 100;
  Workload load = load_of(1, 0.0, 250, 10, 1.0, 1);
  const FleetRun run = fleet.run(load);
  EXPECT_NEAR(seconds_of(run.outcomes[0].first), 3 * 10e-3 + 250 * 100e-6, 1e-12);
  const double contexts = 9 * (251 + 259) / 2.0;
  EXPECT_NEAR(seconds_of(run.outcomes[0].last - run.outcomes[0].first), 9 * (10e-3 + 20e-6) + contexts * 0.1e-6, 1e-12);
  EXPECT_EQ(run.engines[0].iterations, 12);
}

// Two prompts of 100 with a budget of 150: the second is cut to 50, then 50 next to a decode of the first.
TEST(Engine, a_prompt_is_cut_to_the_token_budget) {
  TestFleet fleet;
  fleet.settings.max_batched_tokens = 150;
  Workload load = load_of(2, 0.0, 100, 3, 1.0, 1);
  const FleetRun run = fleet.run(load);
  const double first = 10e-3 + 150 * 100e-6;
  EXPECT_NEAR(seconds_of(run.outcomes[0].first), first, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[1].first), first + 10e-3 + 50 * 100e-6 + 20e-6 + 101 * 0.1e-6, 1e-12);
}

// The second prompt arrives in the first decode step of the first. It is queued when that step has ended, and waits 5
// more: contexts 101 to 106.
Workload two_requests() {
  Workload load = load_of(2, 0.0, 100, 50, 1.0, 1);
  load.requests[1].arrival = ticks_of(Seconds(10e-3 + 100 * 100e-6 + 1e-6));
  return load;
}

TEST(Engine, prompts_wait_until_they_fill_a_batch_or_the_steps_are_over) {
  for (const bool of_ranks : {false, true}) {
    TestFleet fleet;
    fleet.shape.ranks = of_ranks ? 2 : 1;
    (of_ranks ? fleet.settings.balance_wait : fleet.settings.batch_wait) = 5;
    Workload load = two_requests();
    const FleetRun run = fleet.run(load);
    const double waited = 6 * (10e-3 + 20e-6) + 0.1e-6 * (101 + 102 + 103 + 104 + 105 + 106);
    EXPECT_NEAR(seconds_of(run.outcomes[1].scheduled - run.outcomes[0].first), waited, 1e-12);
  }
}

TEST(Engine, prompts_that_fill_a_batch_do_not_wait) {
  for (const bool of_ranks : {false, true}) {
    TestFleet fleet;
    fleet.shape.ranks = of_ranks ? 2 : 1;
    (of_ranks ? fleet.settings.balance_wait : fleet.settings.batch_wait) = 5;
    fleet.settings.max_batched_tokens = 200;
    Workload load = load_of(3, 0.0, 100, 50, 1.0, 1);  // the third waits for nobody, together with the second
    load.requests[1].arrival = load.requests[2].arrival = two_requests().requests[1].arrival;
    const FleetRun run = fleet.run(load);
    const double one_step = 10e-3 + 20e-6 + 0.1e-6 * 101;
    EXPECT_NEAR(seconds_of(run.outcomes[1].scheduled - run.outcomes[0].first), one_step, 1e-12);
    EXPECT_EQ(run.outcomes[2].scheduled, run.outcomes[1].scheduled);
  }
}

// A cache of 10 blocks of 4: two prompts of 16 (4 blocks each) grow until one must leave; it starts again at the end.
// At 20 positions both need their sixth block. The first request then grows to 35 positions, 9 blocks, over four of
// those that the second has left, from its tail: with a cache of prefixes it finds its first block again.
TEST(Engine, the_youngest_request_is_preempted_and_starts_again) {
  for (const bool finds : {false, true}) {
    TestFleet fleet;
    fleet.settings.block_tokens = 4;
    fleet.settings.prefix_cache = finds;
    fleet.shape.blocks = 10;
    Workload load = load_of(2, 0.0, 16, 20, 1.0, 1);
    const FleetRun run = fleet.run(load);
    EXPECT_EQ(run.outcomes[0].preemptions, 0);
    EXPECT_EQ(run.outcomes[1].preemptions, 1);
    EXPECT_EQ(run.outcomes[1].recomputed, finds ? 16 : 20);
    EXPECT_EQ(run.engines[0].prefilled, 32 + 1 + run.outcomes[1].recomputed);  // and the last generated token
    EXPECT_GT(run.outcomes[1].last, run.outcomes[0].last);
    EXPECT_EQ(run.engines[0].peak_blocks, 10);
  }
}

// A request that comes in the first of 10 decode steps between looks is seen at the end of the tenth. Contexts are 11
// to 20.
TEST(Engine, a_request_waits_for_the_next_look) {
  TestFleet fleet;
  fleet.settings.scheduler = Scheduler::prefill_first;
  fleet.settings.poll_interval = 10;
  Workload load;
  load.requests.resize(2);
  load.requests[0].input = load.requests[1].input = 10;
  load.requests[0].output = 100;
  load.requests[1].output = 5;
  const double prefill = 10e-3 + 10 * 100e-6;
  load.requests[1].arrival = ticks_of(Seconds(prefill + 1e-3));
  const FleetRun run = fleet.run(load);
  EXPECT_NEAR(seconds_of(run.outcomes[0].first), prefill, 1e-12);
  const double steps = 10 * (10e-3 + 20e-6) + 10 * (11 + 20) / 2.0 * 0.1e-6;
  EXPECT_NEAR(seconds_of(run.outcomes[1].scheduled), prefill + steps, 1e-12);
  fleet.settings.speculative_tokens = 1;
  fleet.settings.acceptance = 1.0;
  EXPECT_EQ(poll_steps(fleet.settings), 20);
}

TEST(Engine, a_request_longer_than_the_cache_is_refused) {
  TestFleet fleet;
  fleet.shape.blocks = 4;
  Workload load = load_of(1, 0.0, 64, 1, 1.0, 1);
  const auto run = run_fleet(load, {Pool{&fleet.settings, fleet.shape, &fleet.price, 1}}, {});
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().text(), "request 1 has 64 + 1 tokens: the cache of an engine holds 64");
}

TEST(Engine, below_saturation_every_wait_is_bounded) {
  TestFleet fleet;
  Workload load = load_of(test::cases(20'000), 20.0, 100, 20, 0.2, 3);
  const FleetRun run = fleet.run(load);
  for (std::size_t i = 0; i < load.requests.size(); ++i) {
    ASSERT_LT(seconds_of(run.outcomes[i].scheduled - load.requests[i].arrival), 1.0);
  }
}

}  // namespace orrery::serving::engine_test
