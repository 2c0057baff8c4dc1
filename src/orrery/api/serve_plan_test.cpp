// The search over deployments, against single deployments and by its laws.
#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "orrery/api/serve_plan.hpp"
#include "orrery/core/test_effort.hpp"

namespace orrery::api::serve_plan_test {
namespace {

// Degrees of tp; fewer with the sanitizer.
std::vector<std::int64_t> degrees() {
  return test::kSanitizers ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 2};
}

ServePlanRequest small_search() {
  ServePlanRequest request;
  request.base.scenario.model = "llama-3.1-8b";
  request.base.scenario.cluster = "dgx-h100";
  request.base.scenario.isl = 512;
  request.base.scenario.osl = 32;
  request.base.scenario.requests = 300;
  request.base.scenario.slo = "ttft_p99=500ms tpot_p99=20ms";
  request.devices = 4;
  return request;
}

results::ServingPlan found(const ServePlanRequest& request) {
  auto plan = plan_serving(ORRERY_SOURCE_DATA_DIR, request);
  EXPECT_TRUE(plan.has_value()) << plan.error().text();
  return plan ? std::move(*plan) : results::ServingPlan{};
}

// Whether a load above `load`, by a part of it at most, misses the service level.
bool misses_within(ServeRequest run, double load, double part) {
  constexpr int kTries = 44;
  for (int i = 1; i <= kTries; ++i) {
    run.scenario.rate = load * (1.0 + part * i / kTries);
    const auto served = serve(ORRERY_SOURCE_DATA_DIR, run);
    if (served && !served->meets_slo()) { return true; }
  }
  return false;
}

TEST(ApiServePlan, each_of_the_best_carries_its_load_as_a_simulation_of_it_does) {
  const ServePlanRequest request = small_search();
  const auto plan = found(request);
  ASSERT_EQ(plan.best.size(), request.top);
  for (const auto& c : plan.best) {
    ServeRequest run = request.base;
    run.scenario.tp = c.engine.tp;
    run.scenario.pp = c.engine.pp;
    run.scenario.replicas = c.engine.replicas;
    if (c.prefill) {
      run.scenario.prefill_replicas = c.prefill->replicas;
      run.scenario.prefill_tp = c.prefill->tp;
    }
    run.engine = config::mapping_node();
    config::add(run.engine, "max_batched_tokens", config::integer_node(c.max_batched_tokens));
    run.scenario.rate = c.load;
    const auto served = serve(ORRERY_SOURCE_DATA_DIR, run);
    ASSERT_TRUE(served.has_value()) << c.text << ": " << served.error().text();
    EXPECT_TRUE(served->meets_slo()) << c.text;
    EXPECT_EQ(served->ttft.p99, c.result.ttft.p99) << c.text;
    EXPECT_EQ(served->gpus, c.gpus);
    EXPECT_LE(c.gpus, request.devices);
    // 1 % of resolution above, it is missed at some load that the bisection tried. A second bisection, which tries
    // other loads, finds no lower one; it may find a higher one, because loads that carry are not an interval.
    const auto curve = serve_goodput(ORRERY_SOURCE_DATA_DIR, run);
    ASSERT_TRUE(curve.has_value());
    const double again = curve->points[*curve->best].load;
    EXPECT_GE(again, 0.989 * c.load) << c.text;
    if (again > 1.011 * c.load) { EXPECT_TRUE(misses_within(run, c.load, 0.011)) << c.text; }
  }
}

// Of four engines of one kind: 1 and 1, 1 and 2, 2 and 1, 1 and 3, 3 and 1.
TEST(ApiServePlan, pairs_of_pools_are_tried_in_all_ratios) {
  ServePlanRequest request = small_search();
  request.pools = Pools::disaggregated;
  request.tp = request.pp = {1};
  const auto plan = found(request);
  EXPECT_EQ(plan.candidates, 5);
  EXPECT_EQ(plan.matched_out, 0);
}

TEST(ApiServePlan, the_best_ones_are_sorted_by_what_was_asked_for) {
  ServePlanRequest request = small_search();
  for (const auto objective : {ServeObjective::gpu, ServeObjective::usd, ServeObjective::watt}) {
    request.objective = objective;
    const auto plan = found(request);
    for (std::size_t i = 1; i < plan.best.size(); ++i) { EXPECT_GE(plan.best[i - 1].value, plan.best[i].value); }
  }
}

// Of each combination of degrees the best number of drafts, as separate searches with each of them find it; with one
// number nothing else changes.
TEST(ApiServePlan, numbers_of_drafts_are_searched) {
  ServePlanRequest request = small_search();
  request.tp = {1, 2};
  request.pp = {1};
  request.pools = Pools::aggregated;
  std::map<std::string, double> alone;
  for (const std::int64_t drafts : {0, 3}) {
    request.speculative_tokens = {drafts};
    for (const auto& c : found(request).best) { alone[c.text] = std::max(alone[c.text], c.load); }
  }
  request.speculative_tokens = {0, 3};
  const auto both = found(request);
  ASSERT_EQ(both.best.size(), alone.size());
  for (const auto& c : both.best) {
    EXPECT_DOUBLE_EQ(c.load, alone[c.text]) << c.text << c.settings;
    EXPECT_EQ(c.settings, c.drafts == 0 ? ", 0 drafts" : ", 3 drafts");
  }
  // What the other number of drafts would lose.
  double other = 0.0;
  for (const std::int64_t drafts : {0, 3}) {
    if (drafts == both.best.front().drafts) { continue; }
    request.speculative_tokens = {drafts};
    other = found(request).best.front().value;
  }
  const std::string named = both.best.front().drafts == 0 ? "best one with 3 drafts: " : "best one without drafts: ";
  const auto line = std::find_if(both.explanation.begin(), both.explanation.end(),
                                 [&](const std::string& text) { return text.starts_with(named); });
  ASSERT_NE(line, both.explanation.end());
  ASSERT_TRUE(line->ends_with(" % less")) << *line;
  constexpr double kStart = 2.0;  // points: bisections from another start end elsewhere
  EXPECT_NEAR(std::stod(line->substr(line->rfind(", ") + 2)), 100 * (1 - other / both.best.front().value), kStart);
}

// Two halves are tried where tokens travel to experts: ep above 1 with attention dp, not tp.
TEST(ApiServePlan, two_batches_are_searched_where_tokens_travel) {
  ServePlanRequest request = small_search();
  request.base.scenario.model = "qwen3-30b-a3b";
  request.tp = request.pp = {1};
  request.attention_dp = {1, 4};
  request.pools = Pools::aggregated;
  request.max_batched_tokens = {8192};
  const std::int64_t plain = found(request).candidates;  // attention dp 1; 4 with ep 1 and 4
  request.two_batch_decodes = {0, 64};
  EXPECT_EQ(plain, 3);
  EXPECT_EQ(found(request).candidates, 4);
  request.two_batch_decodes = {64};
  EXPECT_EQ(found(request).candidates, 3);
  request.attention_dp = {1};
  const auto refused = plan_serving(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "--two-batch-decodes: two batches need a model with experts, and --ep and --attention-dp above 1: none of "
            "these engines is divided");
}

// Engines that fit with few drafts, or only then meet a limit, are tried with these.
TEST(ApiServePlan, many_drafts_do_not_hide_engines_with_few) {
  ServePlanRequest request = small_search();
  request.tp = request.pp = {1};
  request.pools = Pools::disaggregated;
  request.base.scenario.slo = "tpot_mean=8ms";
  request.speculative_tokens = {0};
  const auto few = found(request);
  ASSERT_FALSE(few.best.empty());
  request.speculative_tokens = {0, 64};
  const auto both = found(request);
  ASSERT_FALSE(both.best.empty());
  EXPECT_GE(both.best.front().load, few.best.front().load);
}

TEST(ApiServePlan, the_number_of_threads_changes_nothing) {
  ServePlanRequest request = small_search();
  request.threads = 1;
  const auto one = found(request);
  request.threads = 3;
  const auto three = found(request);
  ASSERT_EQ(one.best.size(), three.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(one.best[i].text, three.best[i].text);
    EXPECT_EQ(one.best[i].load, three.best[i].load);
  }
  EXPECT_EQ(one.simulated_runs, three.simulated_runs);
}

// The exhaustive search bisects every deployment to the end, and runs every load to the end.
void expect_the_same_answer(ServePlanRequest request) {
  const auto bounded = found(request);
  request.exhaustive = true;
  const auto whole = found(request);
  ASSERT_EQ(bounded.best.size(), whole.best.size());
  for (std::size_t i = 0; i < whole.best.size(); ++i) {
    EXPECT_EQ(bounded.best[i].text + bounded.best[i].settings, whole.best[i].text + whole.best[i].settings);
    EXPECT_EQ(bounded.best[i].load, whole.best[i].load);
    EXPECT_EQ(bounded.best[i].value, whole.best[i].value);
    EXPECT_EQ(bounded.best[i].max_batched_tokens, whole.best[i].max_batched_tokens);
    EXPECT_EQ(bounded.best[i].max_sequences, whole.best[i].max_sequences);
    EXPECT_EQ(bounded.best[i].result.ttft.p99, whole.best[i].result.ttft.p99);
    EXPECT_EQ(bounded.best[i].result.kv_peak, whole.best[i].result.kv_peak);
  }
  ASSERT_EQ(bounded.front.size(), whole.front.size());
  for (std::size_t i = 0; i < whole.front.size(); ++i) {
    EXPECT_EQ(bounded.front[i].text, whole.front[i].text);
    EXPECT_EQ(bounded.front[i].tokens_per_s_per_gpu, whole.front[i].tokens_per_s_per_gpu);
    EXPECT_EQ(bounded.front[i].tokens_per_s_per_user, whole.front[i].tokens_per_s_per_user);
  }
  EXPECT_EQ(bounded.explanation, whole.explanation);
  EXPECT_EQ(bounded.missed, whole.missed);
  EXPECT_EQ(bounded.infeasible, whole.infeasible);
  EXPECT_EQ(bounded.nothing, whole.nothing);
}

TEST(ApiServePlan, loads_that_are_left_out_do_not_change_the_answer) {
  ServePlanRequest request = small_search();
  request.max_batched_tokens = {8192};
  if (!test::kSanitizers) { request.max_batched_tokens.push_back(512); }
  request.max_sequences = {16, 256};
  expect_the_same_answer(request);
  request.base.scenario.slo = "ttft_mean=300ms tpot_mean=15ms e2e_p90=2s";
  request.top = 1;
  expect_the_same_answer(request);
  if (!test::kSanitizers) {
    request.objective = ServeObjective::watt;
    expect_the_same_answer(request);
  }
  request.base.scenario.slo = "ttft_p99=1ms";
  expect_the_same_answer(request);
  if (test::kSanitizers) { return; }
  request.base.scenario.slo = "ttft_p99=500ms tpot_p99=20ms";
  request.speculative_tokens = {0, 2};
  request.tp = {1};
  expect_the_same_answer(request);
}

TEST(ApiServePlan, loads_that_are_left_out_do_not_change_the_smallest_fleet) {
  ServePlanRequest request = small_search();
  request.base.scenario.rate = 60.0;
  request.for_traffic = true;
  request.devices = 0;
  request.top = 1;
  request.tp = degrees();
  request.pp = {1};
  request.max_sequences = {16, 256};
  expect_the_same_answer(request);
  if (test::kSanitizers) { return; }
  request.objective = ServeObjective::usd;
  expect_the_same_answer(request);
}

TEST(ApiServePlan, fewer_choices_are_never_better) {
  ServePlanRequest request = small_search();
  request.top = 1;
  const double all = found(request).best.front().value;
  request.tp = {2};
  const auto restricted = found(request);
  ASSERT_FALSE(restricted.best.empty());
  EXPECT_EQ(restricted.best.front().engine.tp, 2);
  EXPECT_LE(restricted.best.front().value, all);
  request.tp.clear();
  request.pools = Pools::disaggregated;
  const auto pairs = found(request);
  ASSERT_FALSE(pairs.best.empty());
  EXPECT_TRUE(pairs.best.front().prefill.has_value());
  EXPECT_LE(pairs.best.front().value, all);
}

// No point of the front has more of both than another one.
TEST(ApiServePlan, the_front_rises_in_one_and_falls_in_the_other) {
  const auto front = found(small_search()).front;
  ASSERT_GT(front.size(), 1U);
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_LT(front[i].tokens_per_s_per_user, front[i - 1].tokens_per_s_per_user);
    EXPECT_GT(front[i].tokens_per_s_per_gpu, front[i - 1].tokens_per_s_per_gpu);
  }
}

ServePlanRequest small_traffic(double rate) {
  ServePlanRequest request = small_search();
  if (!test::kSanitizers) { request.base.scenario.requests.reset(); }
  request.base.scenario.rate = rate;
  request.for_traffic = true;
  request.devices = 0;
  request.tp = degrees();
  request.pp = {1};
  if (test::kSanitizers) { request.max_batched_tokens = {2048}; }
  return request;
}

constexpr double kMuchTraffic = test::kSanitizers ? 150.0 : 300.0;  // requests/s

// Once for several tests.
const results::ServingPlan& plan_of_much_traffic() {
  static const results::ServingPlan plan = found(small_traffic(kMuchTraffic));
  return plan;
}

ServeRequest run_of(const ServePlanRequest& request, const results::ServingCandidate& c) {
  ServeRequest run = request.base;
  run.scenario.tp = c.engine.tp;
  run.scenario.replicas = c.engine.replicas;
  if (c.prefill) {
    run.scenario.prefill_replicas = c.prefill->replicas;
    run.scenario.prefill_tp = c.prefill->tp;
  }
  config::add(run.engine, "max_batched_tokens", config::integer_node(c.max_batched_tokens));
  run.scenario.requests = c.result.requests;
  return run;
}

bool meets(const ServeRequest& run) {
  const auto served = serve(ORRERY_SOURCE_DATA_DIR, run);
  EXPECT_TRUE(served.has_value());
  return served && served->meets_slo();
}

TEST(ApiServePlan, a_fleet_for_a_traffic_meets_the_service_level_and_one_engine_less_does_not) {
  const ServePlanRequest request = small_traffic(kMuchTraffic);
  const results::ServingPlan& plan = plan_of_much_traffic();
  ASSERT_FALSE(plan.best.empty());
  ASSERT_TRUE(plan.traffic.has_value());
  EXPECT_EQ(plan.traffic->rate, kMuchTraffic);
  for (const auto& c : plan.best) {
    const ServeRequest run = run_of(request, c);
    EXPECT_TRUE(meets(run)) << c.text;
    ServeRequest fewer = run;
    if (c.engine.replicas > 1) {
      fewer.scenario.replicas = c.engine.replicas - 1;
      EXPECT_FALSE(meets(fewer)) << c.text;
    }
    if (c.prefill && c.prefill->replicas > 1) {
      fewer = run;
      fewer.scenario.prefill_replicas = c.prefill->replicas - 1;
      EXPECT_FALSE(meets(fewer)) << c.text;
    }
  }
}

TEST(ApiServePlan, more_traffic_never_needs_fewer_accelerators) {
  ASSERT_FALSE(plan_of_much_traffic().best.empty());
  std::int64_t after = plan_of_much_traffic().best.front().gpus;
  const std::vector<double> rates = test::kSanitizers ? std::vector{20.0} : std::vector{80.0, 20.0};
  for (const double rate : rates) {
    const auto plan = found(small_traffic(rate));
    ASSERT_FALSE(plan.best.empty());
    EXPECT_LE(plan.best.front().gpus, after);
    after = plan.best.front().gpus;
  }
}

TEST(ApiServePlan, too_few_accelerators_for_a_traffic_say_how_many_are_needed) {
  ServePlanRequest request = small_traffic(300.0);
  request.devices = 2;
  const auto plan = found(request);
  EXPECT_TRUE(plan.best.empty());
  EXPECT_NE(plan.nothing.find("2 accelerators do not sustain 300 requests/s"), std::string::npos) << plan.nothing;
  EXPECT_NE(plan.nothing.find("nearest"), std::string::npos) << plan.nothing;
}

TEST(ApiServePlan, what_cannot_be_served_says_why) {
  ServePlanRequest request = small_search();
  request.base.scenario.model = "llama-3.1-405b";
  EXPECT_NE(found(request).nothing.find("does not fit"), std::string::npos) << found(request).nothing;
  request = small_search();
  request.base.scenario.slo = "ttft_p99=1ms";
  const auto plan = found(request);
  EXPECT_TRUE(plan.best.empty());
  EXPECT_NE(plan.nothing.find("no deployment meets the service level"), std::string::npos) << plan.nothing;
  EXPECT_NE(plan.nothing.find("nearest"), std::string::npos) << plan.nothing;
}

// Without a service level requests may wait: no deployment carries less than with one, and the best carries more.
TEST(ApiServePlan, without_a_service_level_the_most_requests_are_answered) {
  ServePlanRequest request = small_search();
  request.base.scenario.requests.reset();
  request.base.scenario.slo = "ttft_p99=1s tpot_p99=8ms";
  request.tp = degrees();
  request.pp = {1};
  const auto within = found(request);
  request.base.scenario.slo.clear();
  const auto without = found(request);
  ASSERT_FALSE(within.best.empty() || without.best.empty());
  EXPECT_GT(without.best[0].load, 1.2 * within.best[0].load);
  EXPECT_FALSE(without.best[0].result.overloaded);
  EXPECT_EQ(without.missed, 0);
}

// A store has 2,000 of 2,050 tokens of every prompt: prompts take a fortieth of the time, and fewer engines.
TEST(ApiServePlan, pools_are_sized_for_the_tokens_that_no_store_has) {
  ServePlanRequest request = small_search();
  request.devices = 8;
  request.pools = Pools::disaggregated;
  request.tp = {1};
  request.pp = {1};
  request.base.scenario.isl = 2050;
  request.base.scenario.kv_format = hardware::CacheFormat::fp8;  // else links limit the prefill engines
  const auto without = found(request);
  ASSERT_FALSE(without.best.empty());
  serving::Stage store;
  store.name = "store";
  store.kind = serving::StageKind::kv_retrieval;
  store.hit_rate = 1.0;
  store.prefix_tokens = 2000;
  store.servers = 64;
  request.base.scenario.stages = {store};
  const auto with = found(request);
  ASSERT_FALSE(with.best.empty());
  EXPECT_GT(without.best[0].prefill->replicas, 2 * with.best[0].prefill->replicas);
  EXPECT_GT(with.best[0].load, 1.5 * without.best[0].load);
}

}  // namespace
}  // namespace orrery::api::serve_plan_test
