// Where TTFT and the time between tokens go: the parts add up, and each is what its cause explains.
#include <gtest/gtest.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"

namespace orrery::api::serve_parts_test {
namespace {

results::Serving run_of(const ServeRequest& request) {
  auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  EXPECT_TRUE(run.has_value()) << run.error().text();
  return run ? std::move(*run) : results::Serving{};
}

// The server sends a token at once, so that no token waits for it.
ServeRequest without_streaming() {
  ServeRequest request = serving_test::small_run();
  config::add(request.engine, "token_host", serving_test::of_a_file(config::text_node("0 s")));
  return request;
}

double sum_of(const results::TokenTime& t) {
  return t.gemms_s + t.attention_s + t.others_s + t.collectives_s + t.drafts_s + t.host_s + t.prompts_s + t.waits_s;
}

void expect_whole(const results::Serving& run) {
  ASSERT_TRUE(run.token_time.has_value());
  const results::TokenTime& t = *run.token_time;
  EXPECT_NEAR(sum_of(t), t.mean_s, 1e-9 * t.mean_s);
  double first = run.request_overhead_s + run.tokenisation_s + run.queue.mean + run.prefill.mean;
  for (const auto& stage : run.stages) { first += stage.place == "before-prefill" ? stage.time.mean : 0.0; }
  for (const auto& part : {run.place, run.transfer, run.sending}) { first += part ? part->mean : 0.0; }
  EXPECT_NEAR(first, run.ttft.mean, 1e-9 * run.ttft.mean);
}

TEST(ServeParts, add_up_on_one_engine) {
  const results::Serving run = run_of(without_streaming());
  expect_whole(run);
  const results::TokenTime& t = *run.token_time;
  EXPECT_NEAR(t.waits_s, 0.0, 1e-6 * t.mean_s);           // nothing is preempted
  EXPECT_NEAR(t.mean_s, run.tpot.mean, 1e-9 * t.mean_s);  // all answers are as long
  EXPECT_GT(t.prompts_s, 0.0);
  EXPECT_EQ(t.collectives_s, 0.0);
  EXPECT_EQ(t.drafts_s, 0.0);
  // By hand: 8.03e9 parameters in bf16 but the lookup of embeddings, read at 3.35 TB/s at most.
  EXPECT_GT(t.gemms_s, 7.5e9 * 2 / 3.35e12);
}

TEST(ServeParts, add_up_with_stages_and_pools) {
  ServeRequest request = without_streaming();
  serving::Stage guard;
  guard.name = "guard";
  guard.kind = serving::StageKind::tool;
  guard.place = serving::StagePlace::before_prefill;
  guard.latency = Seconds(0.02);
  request.scenario.stages = {guard};
  request.scenario.prefill_replicas = 1;
  const results::Serving run = run_of(request);
  expect_whole(run);
  EXPECT_GT(run.transfer->mean, 0.0);
  EXPECT_NEAR(run.token_time->waits_s, 0.0, 1e-6 * run.token_time->mean_s);
  // No prompt is computed on a decode engine, and what joins is a token like others.
  EXPECT_EQ(run.token_time->prompts_s, 0.0);
}

TEST(ServeParts, tensor_parallelism_and_drafts_have_parts_of_their_own) {
  ServeRequest request = without_streaming();
  request.scenario.tp = 2;
  config::add(request.engine, "speculative_tokens", config::integer_node(2));
  const results::Serving run = run_of(request);
  expect_whole(run);
  EXPECT_GT(run.token_time->collectives_s, 0.0);
  EXPECT_GT(run.token_time->drafts_s, 0.0);
}

// Prompts that run in iterations of their own interrupt decoding: the same part.
TEST(ServeParts, iterations_of_prompts_only_count_as_prompts) {
  ServeRequest request = without_streaming();
  config::add(request.engine, "scheduler", config::text_node("prefill-first"));
  const results::Serving run = run_of(request);
  expect_whole(run);
  EXPECT_GT(run.token_time->prompts_s, 0.05 * run.token_time->mean_s);
  EXPECT_NEAR(run.token_time->waits_s, 0.0, 1e-6 * run.token_time->mean_s);
}

TEST(ServeParts, preempted_sequences_wait) {
  ServeRequest request = without_streaming();
  request.scenario.concurrency = 64;
  request.scenario.rate.reset();
  request.scenario.osl = 256;
  config::add(request.engine, "blocks", config::integer_node(800));
  const results::Serving run = run_of(request);
  EXPECT_GT(run.preemptions, 0);
  expect_whole(run);
  EXPECT_GT(run.token_time->waits_s, 0.01 * run.token_time->mean_s);
}

TEST(ServeParts, answers_of_one_token_have_no_time_between_tokens) {
  ServeRequest request = without_streaming();
  request.scenario.osl = 1;
  EXPECT_FALSE(run_of(request).token_time.has_value());
}

}  // namespace
}  // namespace orrery::api::serve_parts_test
