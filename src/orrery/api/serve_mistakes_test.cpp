// What `serve` refuses: settings that change nothing, and deployments and requests that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/serve_plan.hpp"
#include "orrery/api/test_serving.hpp"

namespace orrery::api::serve_mistakes_test {
namespace {

using serving_test::small_run;

// Errors of settings that change nothing, and of those that have no meaning: each names its flag.
TEST(ServeMistakes, settings_without_effect_are_errors) {
  const auto error_of = [](const auto& change) {
    ServeRequest request = small_run();
    change(request);
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    return run ? std::string("none") : run.error().text();
  };
  EXPECT_EQ(error_of([](ServeRequest& r) { r.scenario.trace_speed = 2.0; }),
            "--trace-speed: has an effect only with --trace");
  EXPECT_EQ(error_of([](ServeRequest& r) { r.scenario.ep = 2; }), "--ep: has no effect: llama-3.1-8b has no experts");
  EXPECT_EQ(error_of([](ServeRequest& r) { r.scenario.host_cache_bandwidth = BytesPerSecond(1e10); }),
            "--host-cache-bandwidth: has an effect only with --host-cache");
  EXPECT_EQ(error_of([](ServeRequest& r) { r.scenario.autoscale_hold = Seconds(1.0); }),
            "--autoscale-hold: has an effect only with --autoscale-min or --prefill-autoscale-min");
  EXPECT_EQ(error_of([](ServeRequest& r) { config::add(r.engine, "acceptance", config::real_node(0.5)); }),
            "--acceptance: has an effect only with --speculative-tokens of at least 1");
  EXPECT_EQ(error_of([](ServeRequest& r) { config::add(r.engine, "transfer_by_layer", config::boolean_node(true)); }),
            "--transfer-by-layer: has an effect only with --prefill-replicas");
  EXPECT_EQ(error_of([](ServeRequest& r) { config::add(r.engine, "balance_wait", config::integer_node(3)); }),
            "--balance-wait: has an effect only with --attention-dp of at least 2");
  EXPECT_EQ(error_of([](ServeRequest& r) {
              r.scenario.prefill_replicas = 1;
              config::add(r.engine, "poll_interval", config::integer_node(3));
            }),
            "--poll-interval: has an effect only with engines that prefill and decode (no --prefill-replicas)");
  const auto limit_tpot = [](std::int64_t osl) {
    return [osl](ServeRequest& r) {
      r.scenario.osl = osl;
      r.scenario.slo = "tpot_p99=1s";
    };
  };
  EXPECT_EQ(error_of(limit_tpot(1)), "--slo: tpot has no meaning here: every answer has one token");
  EXPECT_EQ(error_of(limit_tpot(2)), "none");
}

// A search refuses the same, before it looks at deployments.
TEST(ServeMistakes, a_search_refuses_what_all_its_deployments_would) {
  const auto error_of = [](const auto& change) {
    ServePlanRequest request;
    request.base = small_run();
    request.base.scenario.slo = "ttft_p99=1s";
    request.base.scenario.rate.reset();
    request.base.scenario.requests.reset();
    request.devices = 1;
    change(request);
    const auto plan = plan_serving(ORRERY_SOURCE_DATA_DIR, request);
    if (plan) { return std::string("none"); }
    EXPECT_FALSE(plan.error().answer_is_no);
    return plan.error().text();
  };
  EXPECT_EQ(error_of([](ServePlanRequest& r) { r.base.scenario.trace_speed = 2.0; }),
            "--trace-speed: has an effect only with --trace");
  EXPECT_EQ(error_of([](ServePlanRequest& r) { r.ep = {1, 2}; }), "--ep: has no effect: llama-3.1-8b has no experts");
  EXPECT_EQ(error_of([](ServePlanRequest& r) {
              r.base.scenario.osl = 1;
              r.base.scenario.slo = "tpot_p99=1s";
            }),
            "--slo: tpot has no meaning here: every answer has one token");
  EXPECT_EQ(error_of([](ServePlanRequest& r) {
              r.pools = Pools::aggregated;
              config::add(r.base.engine, "transfer_by_layer", config::boolean_node(false));
            }),
            "--no-transfer-by-layer: has an effect only with --prefill-replicas");
}

// Errors of degrees and lengths name the flags of serve, and those of the prefill engines.
TEST(ServeMistakes, errors_of_engines_name_their_flags) {
  ServeRequest request = small_run();
  request.scenario.isl = 1'000'000;
  const auto long_prompts = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(long_prompts.has_value());
  EXPECT_THAT(long_prompts.error().text(), testing::StartsWith("--isl: request 1 has 1000000 + 32 tokens: the cache"));
  request = small_run();
  request.scenario.model = "mixtral-8x7b";
  request.scenario.tp = 8;
  request.scenario.ep = 3;
  const auto experts = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(experts.has_value());
  EXPECT_EQ(experts.error().text(),
            "--ep: \"3\" does not divide the 8 ranks of an engine (tp x attention-dp); nearest valid: 2 and 4");
  request.scenario.ep = 1;
  request.scenario.prefill_replicas = 1;
  request.scenario.prefill_tp = 3;
  const auto heads = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(heads.has_value());
  EXPECT_THAT(heads.error().text(), testing::StartsWith("--prefill-tp: "));
  request.scenario.prefill_tp.reset();
  request.scenario.tp = 3;
  const auto shared = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(shared.has_value());
  EXPECT_THAT(shared.error().text(), testing::StartsWith("--tp: "));
  request = small_run();
  request.scenario.osl = 1'000'000;
  const auto long_answers = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(long_answers.has_value());
  EXPECT_THAT(long_answers.error().text(), testing::StartsWith("--osl: request 1 has 512 + 1000000 tokens: the cache"));
}

TEST(ServeMistakes, a_rate_of_an_unknown_number_format_is_refused) {
  ServeRequest request = small_run();
  request.scenario.model = "mixtral-8x7b";
  request.scenario.tp = 4;
  config::Node rates = config::mapping_node();
  config::add(rates, "fp9", config::real_node(0.5));
  config::add(request.engine, "expert_math_rate_of", std::move(rates));
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(run.has_value());
  EXPECT_NE(run.error().text().find("unknown precision \"fp9\""), std::string::npos) << run.error().text();
}

}  // namespace
}  // namespace orrery::api::serve_mistakes_test
