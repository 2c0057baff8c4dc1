// Serving with the catalogue: what an architect expects of loads, stages and pools, and requests that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"
#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"
#include "orrery/core/test_effort.hpp"

namespace orrery::api::serve_laws_test {
namespace {

// One client on one engine.
ServeRequest one_request(const char* model, const char* cluster, std::int64_t tp) {
  ServeRequest request;
  request.scenario.model = model;
  request.scenario.cluster = cluster;
  request.scenario.tp = tp;
  request.scenario.concurrency = 1;
  request.scenario.requests = 1;
  return request;
}

// On one engine, of as many requests as it takes to judge the rate.
ServeRequest at_rate(double rate, std::int64_t isl, std::int64_t osl) {
  ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
  request.scenario.concurrency.reset();
  request.scenario.requests.reset();
  request.scenario.rate = rate;
  request.scenario.isl = isl;
  request.scenario.osl = osl;
  return request;
}

// Mean time of three prompts of 8,000 tokens, one after the other.
double prompt_time(ServeRequest request) {
  request.scenario.precision = hardware::Precision::fp8;
  request.scenario.isl = 8000;
  request.scenario.osl = 2;
  request.scenario.requests = 3;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  EXPECT_TRUE(run.has_value()) << run.error().text();
  return run ? run->prefill.mean : 0.0;
}

// A limit on the time per token alone is met while prompts queue up. The highest load is one that is answered, and
// twice as much is said to be too much.
TEST(ApiServeLaws, a_load_that_is_not_answered_is_not_carried) {
  ServeRequest request = at_rate(5.0, 8000, 16);
  request.scenario.slo = "tpot_p99=2s";
  const auto curve = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(curve.has_value()) << curve.error().text();
  const results::ServingPoint& best = curve->points[*curve->best];
  EXPECT_GT(best.result.requests_per_s, 0.95 * best.load);
  request.scenario.rate = 2.0 * best.load;
  request.scenario.requests = 2000;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_THAT(run->warnings, testing::Contains(testing::HasSubstr("faster than they are completed")));
}

// One accelerator at 3.6 USD an hour costs a thousandth of a dollar a second.
TEST(ApiServeLaws, tokens_cost_what_an_accelerator_costs) {
  ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
  request.scenario.usd_per_device_hour = 3.6;
  const results::Serving run = serving_test::run_of(request);
  EXPECT_NEAR(*run.usd_per_million_tokens, 1e6 * 1e-3 / run.output_tokens_per_s, 1e-9);
  request.scenario.tp = 2;
  const results::Serving two = serving_test::run_of(request);
  EXPECT_NEAR(*two.usd_per_million_tokens, 1e6 * 2e-3 / two.output_tokens_per_s, 1e-9);
}

// The highest rate without a service level is what an engine answers that always has requests: the throughput of a
// closed loop of more clients than run at a time.
TEST(ApiServeLaws, without_a_service_level_the_highest_rate_is_what_a_busy_engine_answers) {
  ServeRequest request = at_rate(3.0, 1024, 128);
  const auto curve = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(curve.has_value()) << curve.error().text();
  request.scenario.rate.reset();
  request.scenario.concurrency = 1000;
  const auto unlimited = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(unlimited.has_value());
  EXPECT_THAT(unlimited.error().text(), testing::HasSubstr("without a service level no number of clients is too high"));
  request.scenario.requests = 20000;
  const results::Serving busy = serving_test::run_of(request);
  EXPECT_NEAR(curve->points[*curve->best].load, busy.requests_per_s, 0.04 * busy.requests_per_s);
}

// Many engines do not sustain more than as many times what one does, and refusals sustain nothing.
TEST(ApiServeLaws, many_engines_sustain_no_more_than_as_many_alone) {
  ServeRequest request = at_rate(60.0, 512, 64);
  const auto one = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  constexpr std::int64_t kEngines = test::kSanitizers ? 8 : 64;
  request.scenario.replicas = kEngines;
  request.scenario.rate = 16.0 * kEngines;
  const auto many = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(one.has_value() && many.has_value());
  EXPECT_LT(many->points[*many->best].load, kEngines * 1.04 * one->points[*one->best].load);
  request.scenario.replicas = 1;
  request.scenario.admission_limit = 10;
  const auto refusing = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(refusing.has_value()) << refusing.error().text();
  EXPECT_LT(refusing->points[*refusing->best].load, one->points[*one->best].load);
}

// A prompt of 8,000 tokens is in one stage at a time: with more stages it takes as long, and hops.
TEST(ApiServeLaws, pipeline_stages_do_not_divide_a_prompt) {
  const auto prompt_with = [](std::int64_t pp) {
    ServeRequest request = one_request("llama-3.1-70b", "dgx-h100", 4);
    request.scenario.pp = pp;
    return prompt_time(request);
  };
  const double one = prompt_with(1), four = prompt_with(4);
  EXPECT_GT(four, one);
  EXPECT_LT(four, 1.1 * one);
}

// Ranks of attention dp with tp: the experts of eight GPUs compute a prompt as they do with tp 8, in at most four times
// the time (attention is on half of the GPUs, and tokens travel), not in ten.
TEST(ApiServeLaws, experts_under_attention_dp_and_tp_compute_each_token_once) {
  const auto prompt_with = [](std::int64_t tp, std::int64_t attention_dp) {
    ServeRequest request = one_request("deepseek-v3", "gb200-nvl72", tp);
    request.scenario.attention_dp = attention_dp;
    request.scenario.ep = 8;
    return prompt_time(request);
  };
  EXPECT_LT(prompt_with(4, 2), 2.0 * prompt_with(8, 1));
  EXPECT_LT(prompt_with(4, 2), prompt_with(1, 8));
}

TEST(ApiServeLaws, static_batches_do_not_leave_prefill_engines) {
  ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
  request.scenario.engine = "static";
  request.scenario.prefill_replicas = 1;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().text(), testing::HasSubstr("static scheduler"));
}

// The second turn finds all 1,024 tokens of the first, of which 512 came from a store.
TEST(ApiServeLaws, what_a_store_sends_is_found_again) {
  ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
  request.scenario.concurrency.reset();
  request.scenario.rate = 1.0;
  request.scenario.requests = 2;
  request.scenario.turns = 2;
  request.scenario.isl = 1024;
  request.scenario.turn_tokens = 16;
  request.scenario.osl = 8;
  request.each = true;
  serving::Stage store;
  store.name = "store";
  store.kind = serving::StageKind::kv_retrieval;
  store.hit_rate = 1.0;
  store.prefix_tokens = 512;
  request.scenario.stages = {store};
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  ASSERT_EQ(run->each.size(), 2U);
  EXPECT_EQ(run->each[0].cached, 512);
  EXPECT_EQ(run->each[1].cached, 1024);
}

// A profile without a prefix cache: the router counts no hits.
TEST(ApiServeLaws, prefix_aware_routing_needs_no_prefix_cache) {
  ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
  request.scenario.replicas = 2;
  request.scenario.prefix_groups = 3;
  request.scenario.prefix_tokens = 64;
  request.scenario.routing = serving::Routing::prefix_aware;
  config::add(request.engine, "prefix_cache", config::boolean_node(false));
  EXPECT_TRUE(serve(ORRERY_SOURCE_DATA_DIR, request).has_value());
}

// All requests arrive at once and run as one batch: decode takes as long as `estimate --task inference` says. The
// prefill differs by less than 1 %: attention of prompts is priced for all chunks of an iteration together.
TEST(ApiServeLaws, a_static_batch_is_an_estimate_of_inference) {
  struct Case {
    const char *model, *cluster, *stack;
    std::int64_t tp;
    std::optional<hardware::StorageFormat> weights = {};
    hardware::Precision precision = hardware::Precision::bf16;
  };
  for (const auto& [model, cluster, stack, tp, weights, precision] : {
           Case{"llama-3.1-8b", "dgx-h100", "tensorrt-llm", 1},
           Case{"llama-3.1-8b", "dgx-h100", "tensorrt-llm", 4},
           Case{"llama-3.1-8b", "dgx-a100", "pytorch-eager", 4},  // whose hosts are slow
           Case{"deepseek-v2-lite", "dgx-h100", "tensorrt-llm", 1},
           Case{"mixtral-8x7b", "dgx-h200", "tensorrt-llm", 1, hardware::StorageFormat::int4},
           Case{"llama-3.1-70b", "mi355x-node", "vllm-v1", 1, {}, hardware::Precision::fp4},
       }) {
    ServeRequest request = serving_test::small_run();
    request.scenario.precision = precision;
    request.scenario.weight_format = weights;
    request.scenario.model = model;
    request.scenario.cluster = cluster;
    request.scenario.stack = stack;
    request.scenario.rate.reset();
    request.scenario.concurrency = 16;
    request.scenario.requests = 16;
    request.scenario.tp = tp;
    request.scenario.engine = "static";
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    ASSERT_TRUE(run.has_value()) << run.error().text();
    estimate::Request job;
    job.model = model;
    job.cluster = cluster;
    job.precision = precision;
    job.weight_format = weights;
    job.devices = tp;
    job.tp = tp;
    job.sequence_parallel = false;
    job.micro_batch = 16;
    job.task = parallel::Task::inference;
    job.stack = stack;
    job.prompt = 512;
    job.generate = 32;
    job.batch = 16;
    const auto estimate = Orrery(ORRERY_SOURCE_DATA_DIR).estimate(job);
    ASSERT_TRUE(estimate.has_value()) << estimate.error().text();
    const auto& inference = *estimate->estimate.inference;
    EXPECT_NEAR(run->ttft.mean, inference.time_to_first_token.value(), 1e-2 * run->ttft.mean) << model << cluster;
    EXPECT_NEAR(run->tpot.mean, inference.time_per_output_token.value(), 1e-6 * run->tpot.mean) << model << cluster;
  }
}

}  // namespace
}  // namespace orrery::api::serve_laws_test
