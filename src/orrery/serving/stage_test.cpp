// Laws of stages outside the engines: queues, places, stores of keys and values, costs of vector search and encoders.
#include "orrery/serving/stage.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/serving/scenario.hpp"
#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::stage_test {

using engine_test::load_of;
using engine_test::random_case;
using engine_test::RandomCase;

constexpr StagePlace kPlaces[] = {StagePlace::before_prefill, StagePlace::after_answer, StagePlace::between_turns};

// Every request passes stages before the engines and after its answer; between turns, those that a turn follows. Its
// times there are the differences of its own times.
RC_GTEST_PROP(Stages, littles_law_holds_in_each_and_requests_are_conserved, ()) {
  RandomCase c = random_case();
  c.fleet.shape.prompt_host = 0;
  const FleetRun run = c.fleet.run(c.load);
  const std::vector<StationOptions>& stations = c.fleet.options.stations;
  RC_ASSERT(run.stations.size() == stations.size());
  std::int64_t followed = 0;
  for (std::int64_t i = 0; i < std::ssize(c.load.requests); ++i) { followed += c.load.followers_of(i).empty() ? 0 : 1; }
  for (std::size_t k = 0; k < stations.size(); ++k) {
    const StationTotals& totals = run.stations[k];
    const bool is_between = stations[k].place == StagePlace::between_turns;
    double sojourn = 0;
    for (std::size_t i = 0; i < totals.times.size(); ++i) {
      if (is_between && c.load.followers_of(static_cast<std::int64_t>(i)).empty()) {
        RC_ASSERT(totals.waits[i] == -1 && totals.times[i] == -1);
        continue;
      }
      RC_ASSERT(totals.waits[i] >= 0 && totals.waits[i] <= totals.times[i]);
      RC_ASSERT(stations[k].servers > 0 || totals.waits[i] == 0);
      sojourn += seconds_of(totals.times[i]);
    }
    RC_ASSERT(totals.served == (is_between ? followed : std::ssize(c.load.requests)));
    RC_ASSERT(std::abs(totals.inside_integral - sojourn) <= 1e-9 * (sojourn + 1e-6));
    const auto servers = static_cast<double>(stations[k].servers);
    if (servers > 0) { RC_ASSERT(totals.busy_s <= servers * seconds_of(run.end) + 1e-9); }
  }
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    Ticks ready = c.load.requests[i].arrival, answered = run.outcomes[i].last;
    for (std::size_t k = 0; k < stations.size(); ++k) {
      const Ticks time = run.stations[k].times[i];
      ready += stations[k].place == StagePlace::before_prefill ? time : 0;
      answered += stations[k].place == StagePlace::after_answer ? time : 0;
    }
    RC_ASSERT(run.outcomes[i].ready == ready && run.outcomes[i].answered == answered);
  }
}

// A stage that takes no time changes nothing, bit for bit, in any place and under any admission limit.
RC_GTEST_PROP(Stages, a_stage_without_time_is_plain_serving, ()) {
  RandomCase c = random_case();
  if (c.load.clients == 0) { c.fleet.options.admission.limit = *rc::gen::element<std::int64_t>(0, 0, 3); }
  c.fleet.options.stations.clear();
  Workload again = c.load;
  const FleetRun plain = c.fleet.run(c.load);
  StationOptions nothing;
  nothing.servers = *rc::gen::element<std::int64_t>(0, 1);
  for (const StagePlace place : kPlaces) {
    nothing.place = place;
    if (*rc::gen::arbitrary<bool>()) { c.fleet.options.stations.push_back(nothing); }
  }
  const FleetRun staged = c.fleet.run(again);
  RC_ASSERT(plain.end == staged.end && plain.system_integral == staged.system_integral);
  RC_ASSERT(plain.refused == staged.refused && plain.most_in_system == staged.most_in_system);
  for (std::size_t i = 0; i < plain.outcomes.size(); ++i) {
    const Outcome &a = plain.outcomes[i], &b = staged.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last && a.answered == b.answered);
    RC_ASSERT(a.engine == b.engine && a.cached == b.cached && a.refused == b.refused);
  }
}

// Without a queue, a stage after the answer adds exactly its delay to the end of a request and to nothing before it.
// One between turns delays the next turn by it, and no answer includes it.
RC_GTEST_PROP(Stages, a_tool_with_unlimited_servers_adds_exactly_its_delay, ()) {
  RandomCase c = random_case();
  RC_PRE(c.load.clients == 0 && c.load.following.empty());
  c.fleet.options.stations.clear();
  Workload again = c.load;
  const FleetRun plain = c.fleet.run(c.load);
  Stage tool;
  tool.latency = Seconds(0.25);
  tool.place = StagePlace::after_answer;
  c.fleet.options.stations.push_back(station_of(tool));
  const FleetRun delayed = c.fleet.run(again);
  for (std::size_t i = 0; i < plain.outcomes.size(); ++i) {
    RC_ASSERT(delayed.outcomes[i].last == plain.outcomes[i].last);
    RC_ASSERT(delayed.outcomes[i].answered == plain.outcomes[i].last + ticks_of(Seconds(0.25)));
  }
}

TEST(Stages, a_tool_between_turns_delays_the_next_turn_only) {
  LoadOptions options;
  options.requests = 4;
  options.turns = 2;
  options.rate = 0.01;  // a session ends before the next one
  options.input = options.turn_input = 50;
  options.output = 10;
  Workload plain = generated(options), delayed = plain;
  TestFleet fleet;
  const FleetRun before = fleet.run(plain);
  Stage tool;
  tool.latency = Seconds(0.25);
  tool.place = StagePlace::between_turns;
  fleet.options.stations.push_back(station_of(tool));
  const FleetRun after = fleet.run(delayed);
  for (std::size_t i = 0; i < 4; ++i) {
    const Ticks delay = i % 2 == 1 ? ticks_of(Seconds(0.25)) : 0;
    EXPECT_EQ(delayed.requests[i].arrival, plain.requests[i].arrival + delay);
    EXPECT_EQ(after.outcomes[i].answered - delayed.requests[i].arrival,
              before.outcomes[i].answered - plain.requests[i].arrival);
  }
}

// Times that int64 ticks cannot hold are the longest ones, not wrapped ones.
TEST(Stages, times_that_do_not_fit_are_the_longest) {
  EXPECT_EQ(ticks_of(Seconds(2e12)), kLongestTicks);
  EXPECT_EQ(ticks_of(Seconds(std::numeric_limits<double>::infinity())), kLongestTicks);
  EXPECT_EQ(ticks_of(Seconds(1.5)), 15'000'000'000'000);
  StationOptions station;
  station.read = ticks_of(Seconds(1e5));
  EXPECT_EQ(station.time_of(9), 9 * station.read);
  EXPECT_EQ(station.time_of(1'000'000'000), kLongestTicks);
  station.fixed = station.shared = kLongestTicks;
  EXPECT_EQ(station.time_of(2), kLongestTicks);
}

// 2e9 B at 1 mB/s: 2e12 s. A store sends at most all but one token of the longest prompt.
TEST(Stages, a_request_may_take_100000_s_in_a_stage) {
  Stage stage;
  stage.kind = StageKind::embed;
  stage.parameters = 1e9;
  stage.bandwidth = BytesPerSecond(1e-3);
  stage.flops = FlopsPerSecond(1e12);
  const auto slow = check_time(stage, 2, Bytes(0), 100);
  ASSERT_FALSE(slow.has_value());
  EXPECT_EQ(slow.error().diagnostics[0].place.path, "/stages/2");
  EXPECT_NE(slow.error().text().find("takes 2e+12 s for a request; valid: at most 100000 s"), std::string::npos);
  stage.bandwidth = BytesPerSecond(2e4 * (1 + 1e-9));
  EXPECT_TRUE(check_time(stage, 2, Bytes(0), 100).has_value());
  stage.flops = FlopsPerSecond(0);
  EXPECT_FALSE(check_time(stage, 2, Bytes(0), 100).has_value());
  Stage store;
  store.kind = StageKind::kv_retrieval;
  store.bandwidth = BytesPerSecond(1);
  EXPECT_TRUE(check_time(store, 0, Bytes(1000), 101).has_value());
  EXPECT_FALSE(check_time(store, 0, Bytes(1000), 102).has_value());
  store.prefix_tokens = 100;
  EXPECT_TRUE(check_time(store, 0, Bytes(1000), 1'000'000).has_value());
}

// A guard after the answer, listed first, does not change the latencies of a tool before the prompt.
TEST(Stages, random_latencies_do_not_depend_on_stages_of_other_places) {
  Stage tool, guard;
  tool.latency = guard.latency = Seconds(0.1);
  tool.latency_cv = guard.latency_cv = 1.0;
  guard.place = StagePlace::after_answer;
  TestFleet one, two;
  one.options.stations = {station_of(tool)};
  two.options.stations = {station_of(guard), station_of(tool)};
  Workload load = load_of(50, 10.0, 20, 2, 1.0, 3), again = load;
  const FleetRun alone = one.run(load), both = two.run(again);
  EXPECT_EQ(alone.stations[0].times, both.stations[1].times);
  EXPECT_NE(alone.stations[0].times, both.stations[0].times);
}

struct Mean {
  double mean = 0, error = 0;  // standard error, by 40 batches
};

Mean mean_of(const std::vector<Ticks>& times) {
  constexpr std::size_t kBatches = 40;
  const std::size_t size = times.size() / kBatches;
  std::vector<double> means(kBatches);
  for (std::size_t i = 0; i < size * kBatches; ++i) {
    means[i / size] += seconds_of(times[i]) / static_cast<double>(size);
  }
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / kBatches;
  double variance = 0;
  for (const double m : means) { variance += (m - mean) * (m - mean); }
  return {mean, std::sqrt(variance / (kBatches - 1) / kBatches)};
}

// One server without batches is M/D/1: Wq = rho s / (2 (1 - rho)). After the answer too: an engine that takes a tick
// for any iteration passes Poisson arrivals on.
TEST(Stages, one_server_waits_as_m_d_1) {
  for (const StagePlace place : {StagePlace::before_prefill, StagePlace::after_answer}) {
    TestFleet fleet;
    fleet.price.step = 1;
    fleet.price.decode_token = fleet.price.prompt_token = fleet.price.context_token = 0;
    const double service = 20e-3, rho = 0.7;
    StationOptions server;
    server.fixed = ticks_of(Seconds(service));
    server.place = place;
    fleet.options.stations.push_back(server);
    Workload load = load_of(orrery::test::cases(200'000), rho / service, 1, 1, 1.0, 5);
    const FleetRun run = fleet.run(load);
    const Mean wait = mean_of(run.stations[0].waits);
    EXPECT_NEAR(wait.mean, rho * service / (2 * (1 - rho)), 3 * wait.error);
  }
}

// Log-normal service of one server: Pollaczek-Khinchine, E[S^2] = s^2 (1 + cv^2). Without a queue, the times are the
// draws: mean s, standard deviation s cv.
TEST(Stages, random_times_have_their_mean_and_cv_and_wait_as_m_g_1) {
  const double service = 20e-3, cv = 0.8, rho = 0.6;
  Stage tool;
  tool.latency = Seconds(service);
  tool.latency_cv = cv;
  for (const std::int64_t servers : {0, 1}) {
    TestFleet fleet;
    tool.servers = servers;
    fleet.options.stations = {station_of(tool)};
    Workload load = load_of(orrery::test::cases(200'000), rho / service, 1, 1, 1.0, 9);
    const FleetRun run = fleet.run(load);
    const StationTotals& totals = run.stations[0];
    if (servers == 1) {
      const Mean wait = mean_of(totals.waits);
      EXPECT_NEAR(wait.mean, rho * service * (1 + cv * cv) / (2 * (1 - rho)), 3 * wait.error);
      continue;
    }
    const Mean time = mean_of(totals.times);
    EXPECT_NEAR(time.mean, service, 3 * time.error);
    double square = 0;
    for (const Ticks one : totals.times) { square += std::pow(seconds_of(one) - service, 2); }
    EXPECT_NEAR(std::sqrt(square / static_cast<double>(totals.times.size())) / service, cv, 0.05);
  }
}

// Two prompts of 100 tokens at once, a store with one link: a lookup of 2 ms, then 60 tokens at 1 ms each. The first is
// ready after 62 ms, the second after 124 ms. Iterations of 40 tokens take 10 ms + 40 x 100 us.
TEST(Stores, tokens_that_are_found_are_sent_over_a_link_and_not_computed) {
  TestFleet fleet;
  Stage store;
  store.kind = StageKind::kv_retrieval;
  store.latency = Seconds(2e-3);
  store.bandwidth = BytesPerSecond(1e6);
  store.prefix_tokens = 60;
  store.hit_rate = 1.0;
  fleet.options.stations = {station_of(store, Bytes(1e3))};
  Workload load = load_of(2, 0.0, 100, 1, 1.0, 1), missed = load;
  const FleetRun run = fleet.run(load);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(run.outcomes[i].cached, 60);
    EXPECT_NEAR(seconds_of(run.outcomes[i].ready), (static_cast<double>(i) + 1) * 62e-3, 1e-12);
    EXPECT_NEAR(seconds_of(run.outcomes[i].first - run.outcomes[i].ready), 14e-3, 1e-12);
  }
  EXPECT_EQ(run.engines[0].prefilled, 80);
  EXPECT_EQ(run.stations[0].hits, 2);
  EXPECT_EQ(run.stations[0].retrieved, 120);
  store.hit_rate = 0.0;
  fleet.options.stations = {station_of(store, Bytes(1e3))};
  const FleetRun misses = fleet.run(missed);
  EXPECT_NEAR(seconds_of(misses.outcomes[0].ready), 2e-3, 1e-12);
  EXPECT_EQ(misses.engines[0].prefilled, 200);
  EXPECT_EQ(misses.stations[0].hits, 0);
}

// Prompts of 50, 50 + 10 + 50 and 110 + 10 + 50 tokens: a store has those of the turns before it and their answers.
TEST(Stores, a_store_has_the_earlier_turns_of_a_session) {
  LoadOptions options;
  options.requests = 3;
  options.turns = 3;
  options.input = options.turn_input = 50;
  options.output = 10;
  Workload load = generated(options);
  TestFleet fleet;
  fleet.settings.prefix_cache = false;
  Stage store;
  store.kind = StageKind::kv_retrieval;
  store.bandwidth = BytesPerSecond(1e9);
  store.hit_rate = 1.0;
  fleet.options.stations = {station_of(store, Bytes(1))};
  const FleetRun run = fleet.run(load);
  EXPECT_EQ(run.outcomes[0].cached, 0);
  EXPECT_EQ(run.outcomes[1].cached, 60);
  EXPECT_EQ(run.outcomes[2].cached, 120);
}

TEST(Stores, hits_are_as_frequent_as_the_hit_rate) {
  TestFleet fleet;
  StationOptions store;
  store.servers = 0;
  store.store = {0.3, 5, Seconds(0)};
  fleet.options.stations = {store};
  const std::int64_t count = orrery::test::cases(100'000);
  Workload load = load_of(count, 100.0, 10, 1, 1.0, 4);
  const FleetRun run = fleet.run(load);
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(static_cast<double>(run.stations[0].hits) / n, 0.3, 3 * std::sqrt(0.3 * 0.7 / n));
}

// Retrieved passages of 100 tokens are in every prompt, and stay in it; results of a tool of 30 tokens in the next one.
TEST(Stages, tokens_of_stages_are_in_the_prompts_that_follow) {
  Scenario scenario;
  scenario.rate = 1.0;
  scenario.isl = 50;
  scenario.osl = 10;
  scenario.turns = 3;
  scenario.requests = 3;
  scenario.turn_tokens = 20;
  Stage search, tool;
  search.adds_tokens = 100;
  tool.adds_tokens = 30;
  tool.place = StagePlace::between_turns;
  scenario.stages = {search, tool};
  const auto load = workload_of(scenario);
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->requests[0].input, 50 + 100);
  EXPECT_EQ(load->requests[1].input, 150 + 10 + 20 + 100 + 30);
  EXPECT_EQ(load->requests[2].input, 310 + 10 + 20 + 100 + 30);
}

// 10^8 vectors of 1,024 components in 2 B, 1 TB/s: a flat scan reads 204.8 GB in 204.8 ms whatever the batch. IVF with
// 32 of 65,536 lists in codes of 64 B: centroids 0.268 GB and 3.125 MB for each request.
TEST(Stages, vector_search_reads_its_lists) {
  Stage stage;
  stage.kind = StageKind::retrieve;
  stage.bandwidth = BytesPerSecond(1e12);
  stage.flops = FlopsPerSecond(1e18);
  stage.vectors = 1e8;
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), 0.2048, 1e-9);
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(8)), 0.2048, 1e-9);
  stage.shards = 4;
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), 0.0512, 1e-9);
  stage.shards = 1;
  stage.lists = 65536;
  stage.probed = 32;
  stage.vector_bytes = 64;
  const double centroids = 65536.0 * 1024 * 4 / 1e12, codes = 1e8 * 32 / 65536 * 64 / 1e12;
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), centroids + codes, 1e-9);
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(8)), centroids + 8 * codes, 1e-9);
}

// 2^27 vectors of 512 B and ef 100: 2,700 random reads of 100 ns and 2.56 ns at 200 GB/s. Four shards of 2^25 are
// searched at the same time: 2,500 reads.
TEST(Stages, a_graph_search_is_random_reads) {
  Stage stage;
  stage.kind = StageKind::retrieve;
  stage.bandwidth = BytesPerSecond(200e9);
  stage.vectors = std::exp2(27);
  stage.vector_bytes = 512;
  stage.ef = 100;
  stage.read_latency = Seconds(100e-9);
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), 2700 * 102.56e-9, 1e-12);
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(3)), 3 * 2700 * 102.56e-9, 1e-12);
  stage.shards = 4;
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), 2500 * 102.56e-9, 1e-12);
}

// USearch on 64 cores of a Graviton 3, 10^6 vectors of 256 floats: 228,422, 131,654 and 69,065 searches a second with
// ef 32, 64 and 128 (benchmarks of unum-cloud/usearch@0a17e81850). A server is a core.
TEST(Stages, a_graph_search_takes_as_long_as_published_ones) {
  Stage stage;
  stage.kind = StageKind::retrieve;
  stage.bandwidth = BytesPerSecond(200e9);
  stage.vectors = 1e6;
  stage.vector_bytes = 1024;
  for (const auto& [ef, rate] : {std::pair{32, 228'422.0}, {64, 131'654.0}, {128, 69'065.0}}) {
    stage.ef = ef;
    EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), 64 / rate, 0.15 * 64 / rate) << ef;
  }
}

// An encoder of 335 M parameters: 0.67 GB of weights at 1 TB/s, or 2 x 335e6 x 64 FLOPs for each query.
TEST(Stages, an_encoder_reads_its_weights_or_computes) {
  Stage stage;
  stage.kind = StageKind::embed;
  stage.bandwidth = BytesPerSecond(1e12);
  stage.flops = FlopsPerSecond(100e12);
  stage.efficiency = 0.5;
  stage.parameters = 335e6;
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), 2.0 * 335e6 * 64 / 50e12, 1e-9);
  stage.tokens = 1;
  EXPECT_NEAR(seconds_of(station_of(stage).time_of(1)), 0.67e-3, 1e-9);
}

}  // namespace orrery::serving::stage_test
