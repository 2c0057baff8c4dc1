// Laws of memory, time and counts that random runs broke, each with the run that showed it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"
#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"

namespace orrery::api::serve_physics_test {
namespace {

using serving_test::run_of;
using serving_test::small_run;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

ServeRequest clients(std::int64_t count, std::int64_t requests) {
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.concurrency = count;
  request.scenario.requests = requests;
  return request;
}

ServeRequest hybrid(std::int64_t count) {
  ServeRequest request = clients(count, count);
  request.scenario.model = "nemotron-h-56b";
  request.scenario.cluster = "dgx-b200";
  request.scenario.tp = 8;
  return request;
}

// The scan of a prompt runs in chunks, and its work grows with tokens.
TEST(ServePhysics, prompts_of_recurrent_layers_take_the_time_of_an_estimate) {
  ServeRequest request = hybrid(1);
  request.scenario.isl = 8192;
  request.scenario.osl = 2;
  const double prefill = run_of(request).prefill.mean;
  estimate::Request job;
  job.model = "nemotron-h-56b";
  job.cluster = "dgx-b200";
  job.devices = 8;
  job.tp = 8;
  job.micro_batch = 1;
  job.task = parallel::Task::inference;
  job.prompt = 8192;
  job.generate = 2;
  job.batch = 1;
  job.stack = "vllm-v1";
  const auto estimated = Orrery(ORRERY_SOURCE_DATA_DIR).estimate(job);
  ASSERT_TRUE(estimated.has_value()) << estimated.error().text();
  EXPECT_NEAR(prefill, estimated->estimate.inference->time_to_first_token.value(), 0.05 * prefill);
}

// 870 MiB of state for a sequence on four GPUs: 1,000 of them do not run at a time.
TEST(ServePhysics, states_of_recurrent_layers_take_memory) {
  ServeRequest request = hybrid(1000);
  request.scenario.tp = 4;
  request.scenario.isl = request.scenario.osl = 100;
  const results::Serving many = run_of(request);
  EXPECT_LT(many.pools.front().mean_batch, 600.0);
  EXPECT_GT(many.queue.p99, 1.0);
  EXPECT_THAT(many.warnings, Contains(HasSubstr("of state each; 1,024 were asked for")));
  // Activations are those of one sequence of 8,192 tokens, not of as many states.
  request = hybrid(1);
  request.scenario.tp = 2;
  EXPECT_GT(run_of(request).pools.front().blocks, 50'000);
}

TEST(ServePhysics, a_larger_batch_of_a_mixture_is_no_faster) {
  double before = 0;
  for (const std::int64_t count : {40, 48, 56, 64}) {
    ServeRequest request = clients(count, count);
    request.scenario.model = "deepseek-v3";
    request.scenario.cluster = "dgx-h200";
    request.scenario.precision = hardware::Precision::fp8;
    request.scenario.tp = 8;
    request.scenario.isl = 16;
    const double tpot = run_of(request).tpot.p50;
    EXPECT_GE(tpot, before) << count;
    before = tpot;
  }
}

// A client's next request comes when it has the answer: with 16 clients and E2E, a round takes E2E.
TEST(ServePhysics, clients_wait_for_the_overhead_of_their_requests) {
  ServeRequest request = clients(16, 400);
  config::add(request.engine, "request_overhead", config::text_node("1 s"));
  const results::Serving run = run_of(request);
  EXPECT_GE(run.duration_s + 1.0, 25 * run.e2e.mean * (1 - 1e-6));  // the run ends before the last overhead
  request.scenario.turns = 5;
  request.scenario.turn_tokens = 20;
  const results::Serving sessions = run_of(request);
  config::Node* overhead = request.engine.find("request_overhead");
  *overhead = config::text_node("0 s");
  EXPECT_GT(sessions.duration_s - run_of(request).duration_s, 20.0);
}

TEST(ServePhysics, mixtures_run_with_tensor_parallelism_on_every_engine) {
  for (const char* engine : {"vllm-v0", "static", "orca", "sarathi"}) {
    ServeRequest request = clients(4, 8);
    request.scenario.model = "mixtral-8x7b";
    request.scenario.tp = 4;
    request.scenario.engine = engine;
    EXPECT_GT(run_of(request).tpot.mean, 0.0) << engine;
  }
}

// Age that changes nothing is a warning.
TEST(ServePhysics, software_age_without_effect_is_named) {
  const auto warnings = [](const char* model, const char* engine) {
    ServeRequest request = clients(4, 8);
    request.scenario.model = model;
    request.scenario.engine = engine;
    config::add(request.engine, "software_age", config::integer_node(6));
    return run_of(request).warnings;
  };
  EXPECT_THAT(warnings("llama-3.1-8b", "sglang"), Contains(HasSubstr("software_age has no effect: llama-3.1-8b")));
  EXPECT_THAT(warnings("qwen3-30b-a3b", "vllm-v1"), Contains(HasSubstr("age_slowdown of engine vllm-v1 is 0")));
  EXPECT_THAT(warnings("qwen3-30b-a3b", "sglang"), Not(Contains(HasSubstr("software_age"))));
}

TEST(ServePhysics, a_draft_model_takes_memory) {
  ServeRequest request = clients(4, 8);
  const std::int64_t plain = run_of(request).pools.front().blocks;
  config::add(request.engine, "speculative_tokens", config::integer_node(2));
  config::add(request.engine, "draft_layers", config::integer_node(32));  // as many as the model has
  EXPECT_LT(2.2 * static_cast<double>(run_of(request).pools.front().blocks), static_cast<double>(plain));
}

TEST(ServePhysics, a_store_that_is_only_written_limits_nothing) {
  ServeRequest request = small_run();
  request.scenario.isl = 1500;
  request.scenario.turns = 5;
  request.scenario.turn_tokens = 100;
  request.scenario.think = Seconds(5);
  request.scenario.replicas = 4;
  request.scenario.requests = 600;
  request.scenario.remote_cache = Bytes(5.0 * 1073741824.0);
  request.scenario.remote_store_bandwidth = BytesPerSecond(1e9);
  const results::Serving run = run_of(request);
  ASSERT_EQ(run.tiers.size(), 1U);
  ASSERT_EQ(run.tiers[0].tokens, 0);
  EXPECT_GT(run.tiers[0].busy.value_or(0.0), 0.9);
  EXPECT_THAT(run.warnings, Not(Contains(HasSubstr("store reads and writes"))));
}

TEST(ServePhysics, branches_that_are_cut_after_a_token_spend_what_they_wait) {
  ServeRequest request = small_run();
  request.scenario.rate = 16;
  request.scenario.isl = 300;
  request.scenario.osl = 1;
  request.scenario.length_cv = 1.5;
  request.scenario.branches = 2;
  request.scenario.join = 1;
  request.scenario.engine = "sglang";
  const results::Serving run = run_of(request);
  ASSERT_TRUE(run.token_time.has_value());
  EXPECT_GE(run.token_time->waits_s, -1e-3 * run.token_time->mean_s);
  EXPECT_LE(run.token_time->prompts_s, run.token_time->mean_s);
}

TEST(ServePhysics, requests_beyond_the_models_context_are_named) {
  ServeRequest request = clients(1, 2);
  request.scenario.model = "llama-2-7b";
  request.scenario.cluster = "dgx-h200";
  request.scenario.isl = 50'000;
  request.scenario.branches = 2;
  EXPECT_THAT(run_of(request).warnings, Contains(HasSubstr("2 requests are longer than the 4,096 tokens")));
  request.scenario.branches = 1;
  request.scenario.isl = 1000;
  EXPECT_THAT(run_of(request).warnings, Not(Contains(HasSubstr("longer than"))));
}

}  // namespace
}  // namespace orrery::api::serve_physics_test
