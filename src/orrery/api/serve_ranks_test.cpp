// Prompts on the ranks of engines: whole on one rank of attention dp, and sent by prefill engines.
#include <gtest/gtest.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"

namespace orrery::api::serve_ranks_test {
namespace {

// `prompts` of 1,024 tokens that come at the same time and have one token to generate.
ServeRequest prompts_at_once(std::int64_t prompts) {
  ServeRequest request;
  request.scenario.model = "llama-3.1-8b";
  request.scenario.cluster = "dgx-h100";
  request.scenario.concurrency = request.scenario.requests = prompts;
  request.scenario.isl = 1024;
  request.scenario.osl = 1;
  config::add(request.engine, "prompt_host", config::text_node("0 s"));
  config::add(request.engine, "token_host", config::text_node("0 s"));
  return request;
}

results::Serving run_of(const ServeRequest& request) {
  auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  EXPECT_TRUE(run.has_value()) << run.error().text();
  return run ? std::move(*run) : results::Serving{};
}

// Five to eight prompts on four ranks: two are on the fullest rank, so they take as long; four take about half.
TEST(ServeRanks, a_prompt_stays_whole_on_one_rank_of_attention_dp) {
  const auto ttft_of = [](std::int64_t prompts) {
    ServeRequest request = prompts_at_once(prompts);
    request.scenario.attention_dp = 4;
    return run_of(request).ttft.mean;
  };
  EXPECT_NEAR(ttft_of(5), ttft_of(8), 1e-9);
  EXPECT_NEAR(ttft_of(1), ttft_of(4), 1e-9);
  EXPECT_GT(ttft_of(5), 1.5 * ttft_of(4));
  EXPECT_GT(ttft_of(9), ttft_of(8));
}

// Two prompts of 6,000 tokens for each rank, of which 8,192 fit in an iteration: about as long as two prompts on one
// rank.
TEST(ServeRanks, a_rank_computes_no_more_tokens_than_an_iteration_may_have) {
  const auto ttft_of = [](std::int64_t prompts, std::int64_t ranks) {
    ServeRequest request = prompts_at_once(prompts);
    request.scenario.isl = 6000;
    request.scenario.attention_dp = ranks;
    return run_of(request).ttft.max;
  };
  EXPECT_GT(ttft_of(8, 4), 0.95 * ttft_of(2, 1));
  EXPECT_LT(ttft_of(8, 4), 1.2 * ttft_of(2, 1));
}

// Each layer (of 32) of a prompt that an engine sends delays it by `transfer_layer_host`; engines that send nothing do
// not wait, nor do prompts whose answer is one token.
TEST(ServeRanks, a_prefill_engine_waits_for_the_prompts_that_it_sends) {
  const auto prefill_of = [](std::int64_t prompts, bool has_pools, const char* host, std::int64_t osl = 2) {
    ServeRequest request = prompts_at_once(prompts);
    if (has_pools) { request.scenario.prefill_replicas = 1; }
    request.scenario.osl = osl;
    config::add(request.engine, "transfer_layer_host", serving_test::of_a_file(config::text_node(host)));
    return run_of(request).prefill.mean;
  };
  constexpr double kPrompt = 32 * 0.5e-3;
  EXPECT_NEAR(prefill_of(1, true, "0.5 ms") - prefill_of(1, true, "0 s"), kPrompt, 1e-9);
  EXPECT_NEAR(prefill_of(4, true, "0.5 ms") - prefill_of(4, true, "0 s"), 4 * kPrompt, 1e-9);
  EXPECT_EQ(prefill_of(4, false, "0.5 ms"), prefill_of(4, false, "0 s"));
  EXPECT_EQ(prefill_of(4, true, "0.5 ms", 1), prefill_of(4, true, "0 s", 1));
}

// Where the host limits short prompts, what experts of all ranks take is no part of the time.
TEST(ServeRanks, a_longer_prompt_on_one_rank_never_takes_less) {
  double before = 0;
  for (const std::int64_t tokens : {8, 64, 256, 512, 1024}) {
    ServeRequest request = serving_test::small_run();
    request.scenario.model = "qwen3-30b-a3b";
    request.scenario.cluster = "dgx-h200";
    request.scenario.attention_dp = request.scenario.ep = 8;
    request.scenario.rate.reset();
    request.scenario.concurrency = request.scenario.requests = 1;
    request.scenario.isl = tokens;
    request.scenario.osl = 2;
    request.scenario.engine = "orca";
    request.scenario.stack = "pytorch-eager";
    const double prefill = serving_test::run_of(request).prefill.mean;
    EXPECT_GE(prefill, before) << tokens;
    before = prefill;
  }
}

}  // namespace
}  // namespace orrery::api::serve_ranks_test
