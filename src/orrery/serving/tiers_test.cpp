// Laws of tiers of the prefix cache, of a store that engines share, and of loads.
#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/prefix_cache.hpp"
#include "orrery/serving/remote_store.hpp"
#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::tiers_test {

using engine_test::random_case;
using engine_test::RandomCase;

// Held by a request that computes it, a block is found when it has been computed. If that never happens, nothing is
// kept, neither on the device nor in a tier.
TEST(PrefixCache, a_block_that_nobody_computes_is_not_kept) {
  const std::vector<std::uint32_t> blocks = {0, 1, 2};
  PrefixCache cache(3, {10});
  cache.acquire(blocks);
  EXPECT_EQ(cache.hits(blocks), 0);
  cache.set_computed(std::span(blocks).first(2));
  EXPECT_EQ(cache.hits(blocks), 2);
  cache.release(blocks);
  EXPECT_EQ(cache.idle(), 2);
  cache.evict();
  cache.evict();
  EXPECT_EQ(cache.in_tier(blocks, 0), 2);
  EXPECT_EQ(cache.hits(blocks), 2);
  cache.acquire(blocks);  // from the tier: to be loaded
  EXPECT_EQ(cache.hits(blocks), 0);
}

// Tiers without room change nothing, bit for bit.
RC_GTEST_PROP(Tiers, tiers_of_no_size_are_no_tiers, ()) {
  RandomCase c = random_case();
  c.fleet.shape.tiers.clear();
  c.fleet.options.store_tokens = 0;
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

// One client, a request at a time, so that memory never delays one; a device cache of one request; prefixes or
// sessions.
struct OneClient {
  TestFleet fleet;
  Workload load;
};

OneClient one_client() {
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
  OneClient one;
  one.load = generated(options);
  std::int64_t longest = 0;
  for (const Request& request : one.load.requests) { longest = std::max(longest, request.input + request.output); }
  one.fleet.shape.blocks = longest / one.fleet.settings.block_tokens + 2;
  return one;
}

constexpr std::int64_t kUnlimited = std::int64_t{1} << 40;

// With tiers, or a store, that are unlimited and take no time, a cache of one request finds what an unlimited cache
// finds, at the same times.
RC_GTEST_PROP(Tiers, an_unlimited_tier_without_time_is_an_unlimited_cache, ()) {
  OneClient one = one_client();
  Workload again = one.load;
  const bool shares = *rc::gen::arbitrary<bool>();
  one.fleet.shape.tiers = {{*rc::gen::element<std::int64_t>(0, 160), 0, 0}, {shares ? 0 : kUnlimited, 0, 0}};
  one.fleet.options.store_tokens = shares ? kUnlimited : 0;
  const FleetRun tiered = one.fleet.run(one.load);
  one.fleet.shape.tiers.clear();
  one.fleet.shape.blocks = 1 << 20;
  const FleetRun unlimited = one.fleet.run(again);
  RC_ASSERT(tiered.end == unlimited.end);
  for (std::size_t i = 0; i < again.requests.size(); ++i) {
    const Outcome &a = unlimited.outcomes[i], &b = tiered.outcomes[i];
    RC_ASSERT(a.cached == b.cached && a.first == b.first && a.last == b.last);
  }
}

// A slower one finds the same, later by its loads: by the rate, and without a rate by the latency of each.
RC_GTEST_PROP(Tiers, a_slower_tier_finds_the_same_later, ()) {
  OneClient one = one_client();
  Workload at_once = one.load, with_latency = one.load;
  const bool shares = *rc::gen::arbitrary<bool>();
  one.fleet.shape.tiers = {{0, 0, 0}, {shares ? 0 : kUnlimited, 0, 0}};
  one.fleet.options.store_tokens = shares ? kUnlimited : 0;
  const FleetRun fast = one.fleet.run(at_once);
  one.fleet.shape.tiers[1].token = ticks_of(Seconds(1e-6));
  const FleetRun slow = one.fleet.run(one.load);
  one.fleet.shape.tiers[1] = {one.fleet.shape.tiers[1].tokens, 0, ticks_of(Seconds(3e-3))};
  const FleetRun late = one.fleet.run(with_latency);
  for (std::size_t i = 0; i < fast.outcomes.size(); ++i) {
    RC_ASSERT(fast.outcomes[i].cached == slow.outcomes[i].cached && fast.outcomes[i].cached == late.outcomes[i].cached);
  }
  RC_ASSERT(fast.engines[0].loads == 0 && fast.engines[0].tier_tokens[1] == slow.engines[0].tier_tokens[1]);
  RC_ASSERT(slow.end - fast.end == slow.engines[0].tier_tokens[1] * ticks_of(Seconds(1e-6)));
  RC_ASSERT(late.end - fast.end == late.engines[0].loads * ticks_of(Seconds(3e-3)));
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
  EXPECT_NEAR(run.engines[0].tier_s[0], 48e-6, 1e-12);
  EXPECT_NEAR(run.engines[0].load_wait_s, 53e-6, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[2].scheduled - load.requests[2].arrival), 53e-6, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[2].first - run.outcomes[2].scheduled), 10e-3 + 100e-6, 1e-12);
}

// Prompts of 64 tokens at given times, of given contents: prompt n has the blocks 4 n to 4 n + 3.
struct Asked {
  double arrival;
  std::uint32_t prompt;
  std::int64_t output;
};

Workload asked(const std::vector<Asked>& list) {
  Workload load;
  load.block_tokens = 16;
  for (const Asked& a : list) {
    Request request;
    request.arrival = ticks_of(Seconds(a.arrival));
    request.input = 64;
    request.output = a.output;
    request.first_block = static_cast<std::uint32_t>(load.block_ids.size());
    request.blocks = 4;
    for (std::uint32_t i = 0; i < 4; ++i) { load.block_ids.push_back(4 * a.prompt + i); }
    load.requests.push_back(request);
  }
  return load;
}

// A fleet whose engines share a store, which gives a token in a millisecond: 64 ms a prompt.
TestFleet sharing(std::int64_t engines) {
  TestFleet fleet;
  fleet.replicas = engines;
  fleet.options.routing = Routing::round_robin;
  fleet.options.store_tokens = kUnlimited;
  fleet.shape.tiers = {{0, 0, 0}, {0, ticks_of(Seconds(1e-3)), 0}};
  return fleet;
}

// By hand: engine 0 computes prompt 0, so that engine 1 finds it, 64 ms later. Engine 1 begins with prompt 1 in that
// time, although it came later.
TEST(Store, what_an_engine_wrote_another_one_loads_while_it_runs_others) {
  TestFleet fleet = sharing(2);
  Workload load = asked({{0.0, 0, 1}, {1.0, 0, 2}, {1.0, 2, 1}, {1.01, 1, 50}});
  const FleetRun run = fleet.run(load);
  EXPECT_EQ(run.outcomes[1].engine, 1);
  EXPECT_EQ(run.outcomes[1].cached, 63);
  EXPECT_EQ(run.outcomes[3].engine, 1);
  EXPECT_EQ(run.outcomes[3].scheduled, load.requests[3].arrival);
  EXPECT_EQ(run.engines[1].tier_tokens[1], 64);
  // Loaded at 1.064 s. The prompt of 64 tokens runs until 1.0264 s; decode steps of one sequence take 10.02 ms and
  // 0.1 us for each of 65, 66, 67 and 68 positions: the fourth ends at 1.06648 s and 26.6 us.
  EXPECT_NEAR(seconds_of(run.outcomes[1].scheduled), 1.0665066, 1e-9);
}

// By hand: two prompts that engine 1 loads queue on its link: 64 and 128 ms. A second request for the same prompt waits
// for the load of the first and adds none.
TEST(Store, loads_of_one_link_queue_and_blocks_are_loaded_once) {
  TestFleet fleet = sharing(2);
  fleet.settings.max_batched_tokens = 1000;
  Workload load =
      asked({{0.0, 0, 1}, {0.0, 9, 1}, {0.0, 1, 1}, {1.0, 0, 1}, {1.0, 8, 1}, {1.0, 1, 1}, {1.0, 8, 1}, {1.0, 0, 1}});
  const FleetRun run = fleet.run(load);
  for (const std::size_t i : {3U, 5U, 7U}) {
    EXPECT_EQ(run.outcomes[i].engine, 1);
    EXPECT_EQ(run.outcomes[i].cached, 63);
  }
  EXPECT_NEAR(seconds_of(run.outcomes[3].scheduled), 1.064, 1e-12);
  EXPECT_EQ(run.outcomes[7].scheduled, run.outcomes[3].scheduled);
  EXPECT_NEAR(seconds_of(run.outcomes[5].scheduled), 1.128, 1e-12);
  EXPECT_EQ(run.engines[1].tier_tokens[1], 128);
  EXPECT_NEAR(run.engines[1].load_wait_s, 64e-3 + 128e-3 + 64e-3, 1e-12);
}

// By hand: two engines load a prompt of 64 tokens each at 1 s, in 64 ms of their own links. The links of the store send
// one after the other, in 40 ms each: no limit for the first, and the second ends at 1.08 s. Three prompts were
// written.
TEST(Store, reads_of_all_engines_share_its_links) {
  TestFleet fleet = sharing(3);
  fleet.options.store_token = ticks_of(Seconds(40e-3 / 64));
  Workload load = asked({{0.0, 0, 1}, {0.0, 9, 1}, {0.0, 8, 1}, {1.0, 9, 1}, {1.0, 0, 1}});
  const FleetRun run = fleet.run(load);
  EXPECT_EQ(run.outcomes[3].engine, 0);
  EXPECT_EQ(run.outcomes[4].engine, 1);
  EXPECT_NEAR(seconds_of(run.outcomes[3].scheduled), 1.064, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[4].scheduled), 1.080, 1e-12);
  EXPECT_NEAR(run.store_busy_s, 5 * 40e-3, 1e-12);
}

// By hand: a prompt that comes at 0.98 s is computed in 16.4 ms and then written in 40 ms; a load that begins at 1 s
// follows, in another 40 ms.
TEST(Store, a_write_delays_a_read) {
  TestFleet fleet = sharing(3);
  fleet.options.store_token = ticks_of(Seconds(40e-3 / 64));
  Workload load = asked({{0.0, 0, 1}, {0.0, 9, 1}, {0.98, 7, 1}, {1.0, 9, 1}});
  const FleetRun run = fleet.run(load);
  EXPECT_EQ(run.outcomes[3].cached, 63);
  EXPECT_NEAR(seconds_of(run.outcomes[3].scheduled), 0.98 + 16.4e-3 + 2 * 40e-3, 1e-12);
}

// Engines that share a store find at least what each finds alone; round robin, so that requests are on the same
// engines. Prompts are computed whole: of one that is computed in parts, others find what is computed when they come.
RC_GTEST_PROP(Store, engines_that_share_find_at_least_as_much, ()) {
  RandomCase c = random_case();
  RC_PRE(c.load.clients == 0 && c.load.following.empty());
  c.fleet.settings.policy = Policy::fcfs;
  c.fleet.options.routing = Routing::round_robin;
  c.fleet.options.stations.clear();
  c.fleet.settings.max_batched_tokens = 1 << 20;
  c.fleet.settings.long_prefill_threshold = 0;
  c.fleet.autoscale = {};
  c.fleet.replicas = 3;
  c.fleet.shape.blocks = 1 << 20;
  c.fleet.shape.tiers.clear();
  c.fleet.options.store_tokens = 0;
  Workload again = c.load;
  const FleetRun alone = c.fleet.run(c.load);
  c.fleet.shape.tiers = {{0, 0, 0}, {0, 0, 0}};
  c.fleet.options.store_tokens = kUnlimited;
  const FleetRun shared = c.fleet.run(again);
  for (std::size_t i = 0; i < alone.outcomes.size(); ++i) {
    RC_ASSERT(shared.outcomes[i].engine == alone.outcomes[i].engine);
    RC_ASSERT(shared.outcomes[i].cached >= alone.outcomes[i].cached);
  }
}

// Against a list of blocks, the first of which was written longest ago.
RC_GTEST_PROP(Store, agrees_with_a_list_and_never_holds_more_than_fits, ()) {
  const auto capacity = *rc::gen::inRange<std::int64_t>(0, 12);
  RemoteStore store(20, capacity);
  std::vector<std::uint32_t> slow;
  for (auto writes = *rc::gen::inRange<int>(0, 30); writes > 0; --writes) {
    std::vector<std::uint32_t> prompt;
    const auto first = *rc::gen::inRange<std::uint32_t>(0, 15);
    for (auto n = *rc::gen::inRange<std::uint32_t>(0, 6); n > 0; --n) { prompt.insert(prompt.begin(), first + n - 1); }
    store.write(prompt, 0);
    for (std::size_t i = prompt.size(); i-- > 0;) {
      std::erase(slow, prompt[i]);
      slow.push_back(prompt[i]);
    }
    while (std::ssize(slow) > capacity) { slow.erase(slow.begin()); }
    RC_ASSERT(store.count() == std::ssize(slow) && store.peak() <= capacity);
    for (std::uint32_t id = 0; id < 20; ++id) {
      RC_ASSERT(store.has(id) == (std::find(slow.begin(), slow.end(), id) != slow.end()));
    }
  }
}

}  // namespace orrery::serving::tiers_test
