// Serving with the catalogue: against estimates of batches, and properties of whole runs.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"

namespace orrery::api::serve_test {
namespace {

using serving_test::small_run;

TEST(ApiServe, the_same_seed_gives_the_same_answer_and_more_load_waits_longer) {
  const auto first = serve(ORRERY_SOURCE_DATA_DIR, small_run());
  const auto second = serve(ORRERY_SOURCE_DATA_DIR, small_run());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->ttft.p99, second->ttft.p99);
  ServeRequest more = small_run();
  more.scenario.rate = 60.0;
  const auto loaded = serve(ORRERY_SOURCE_DATA_DIR, more);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_GT(loaded->tpot.mean, first->tpot.mean);
}

TEST(ApiServe, goodput_is_the_highest_rate_within_the_service_level) {
  ServeRequest request = small_run();
  request.scenario.slo = "ttft_p99=500ms tpot_p99=20ms";
  const auto curve = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(curve.has_value()) << curve.error().text();
  ASSERT_TRUE(curve->best.has_value());
  for (std::size_t i = 0; i < curve->points.size(); ++i) {
    EXPECT_EQ(curve->points[i].result.meets_slo(), i <= *curve->best) << curve->points[i].load;
  }
}

// A check of 500 ms by one person after each answer: two requests a second, whatever the engine does. No limit of the
// service level is about it.
TEST(ApiServe, a_full_stage_after_the_answer_does_not_carry_a_load) {
  ServeRequest request = small_run();
  request.scenario.slo = "ttft_p99=500ms tpot_p99=20ms";
  serving::Stage check;
  check.name = "check";
  check.kind = serving::StageKind::tool;
  check.place = serving::StagePlace::after_answer;
  check.servers = 1;
  check.latency = Seconds(0.5);
  request.scenario.stages = {check};
  request.scenario.rate = 8.0;
  request.scenario.requests = 4000;  // of 200, a tenth more than the stage serves is chance
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_TRUE(run->meets_slo());
  EXPECT_THAT(run->warnings, testing::ElementsAre(testing::HasSubstr("stage check: requests come faster")));
  const auto curve = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(curve.has_value()) << curve.error().text();
  EXPECT_NEAR(curve->points[*curve->best].load, 2.0, 0.2);
  EXPECT_EQ(curve->points.back().load, 8.0);
  ASSERT_NE(curve->points.back().result.full_stage(), nullptr);
  EXPECT_EQ(curve->points.back().result.full_stage()->name, "check");
  request.scenario.rate.reset();
  request.scenario.concurrency = 4;  // clients wait for it: a closed loop does not fill up
  const auto closed = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(closed.has_value()) << closed.error().text();
  EXPECT_TRUE(closed->warnings.empty());
  EXPECT_NEAR(closed->requests_per_s, 2.0, 0.1);
}

TEST(ApiServe, a_service_level_that_nothing_meets_is_answered_with_the_nearest) {
  ServeRequest request = small_run();
  request.scenario.slo = "tpot_p99=1us";
  const auto curve = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(curve.has_value());
  EXPECT_TRUE(curve.error().answer_is_no);
  EXPECT_NE(curve.error().text().find("nearest"), std::string::npos);
}

TEST(ApiServe, disaggregated_requests_wait_for_their_transfer) {
  ServeRequest request = small_run();
  request.scenario.prefill_replicas = 1;
  request.scenario.replicas = 2;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_EQ(run->gpus, 3);
  ASSERT_TRUE(run->transfer.has_value());
  EXPECT_GT(run->transfer->mean, 0.0);
  EXPECT_EQ(run->pools.front().prefill_share, 1.0);
}

// A decode engine mixes what arrives into its steps, whatever its profile does with prompts.
TEST(ApiServe, requests_join_the_next_step_of_a_decode_engine) {
  const auto run_with = [](const char* engine, const char* scheduler) {
    ServeRequest request = small_run();
    request.scenario.engine = engine;
    request.scenario.prefill_replicas = 2;
    request.scenario.replicas = 1;
    request.scenario.osl = 128;
    if (scheduler != nullptr) { config::add(request.engine, "scheduler", config::text_node(scheduler)); }
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? *run : results::Serving{};
  };
  const auto usual = run_with("sglang", nullptr), mixed = run_with("sglang", "mixed");
  EXPECT_GT(usual.tpot.mean, 0.0);
  EXPECT_DOUBLE_EQ(usual.tpot.mean, mixed.tpot.mean);
}

// Drafts that are never accepted: a step verifies four positions for one token. The cache is read once for all of
// them, and 128 heads on one rank multiply four times as much, so long contexts cost more with drafts.
TEST(ApiServe, attention_multiplies_the_queries_of_all_drafts) {
  const auto growth_with = [](std::int64_t drafts) {
    const auto tpot_at = [&](std::int64_t isl) {
      ServeRequest request;
      request.scenario.model = "deepseek-v3";
      request.scenario.cluster = "dgx-b200";
      request.scenario.precision = hardware::Precision::fp8;
      request.scenario.tp = 1;
      request.scenario.attention_dp = request.scenario.ep = 8;
      request.scenario.concurrency = request.scenario.requests = 1;
      request.scenario.isl = isl;
      request.scenario.osl = 16;
      config::add(request.engine, "speculative_tokens", config::integer_node(drafts));
      if (drafts > 0) { config::add(request.engine, "acceptance", config::real_node(0.0)); }
      const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
      EXPECT_TRUE(run.has_value()) << run.error().text();
      return run ? run->tpot.mean : 0.0;
    };
    return tpot_at(100'000) - tpot_at(1'000);
  };
  const double one = growth_with(0), four = growth_with(3);
  EXPECT_GT(four, 1.5 * one);
  EXPECT_LT(four, 4.0 * one);
}

// A trace of `rows`: arrival, tokens of prompt and output, blocks.
Result<results::Serving> served_trace(const std::string& rows) {
  const std::string file = ::testing::TempDir() + "orrery_serve_trace.csv";
  std::ofstream(file) << "arrival_s,input_tokens,output_tokens,block_ids\n" << rows;
  ServeRequest request;
  request.scenario.model = "llama-3.1-8b";
  request.scenario.cluster = "dgx-h100";
  request.scenario.trace = file;
  request.each = true;
  auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  std::remove(file.c_str());
  return run;
}

// Blocks that arrive again are found again: four prompts of two blocks, of which three share the first.
TEST(ApiServe, leading_blocks_of_a_trace_are_found_in_the_cache) {
  const auto run = served_trace("0,1024,4,1-2\n1,1024,4,1 3\n2,1024,4,1-2\n3,1024,4,7 2\n");
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_EQ(run->each[0].cached, 0);
  EXPECT_EQ(run->each[1].cached, 512);
  EXPECT_EQ(run->each[2].cached, 1023);  // the last token is computed in any case
  EXPECT_EQ(run->each[3].cached, 0);
}

// A last block of 256 tokens counts where a prompt that ended in it came before, as in published rates; its tokens are
// computed again.
TEST(ApiServe, a_partial_last_block_counts_as_in_published_hit_rates) {
  const auto run = served_trace("0,768,4,1-2\n1,768,4,1-2\n2,768,4,3 2\n3,768,4,1 4\n");
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_EQ(run->each[1].cached, 512);
  ASSERT_TRUE(run->prefix_block_hit_rate.has_value());
  EXPECT_DOUBLE_EQ(*run->prefix_block_hit_rate, 3.0 / 8.0);  // blocks 1 and 2 of the second, 1 of the fourth
}

ServeRequest one_request(const char* model, const char* cluster, std::int64_t tp) {
  ServeRequest request = small_run();
  request.scenario.model = model;
  request.scenario.cluster = cluster;
  request.scenario.tp = tp;
  request.scenario.rate.reset();
  request.scenario.concurrency = 1;
  request.scenario.requests = 1;
  return request;
}

double tpot_of(const ServeRequest& request) {
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  EXPECT_TRUE(run.has_value()) << run.error().text();
  return run ? run->tpot.mean : 0.0;
}

// One request: its prompt waits for the host, its other tokens do not. Experts load slower before 4-bit matrix units
// only.
TEST(ApiServe, experts_cost_the_host_in_prompts_and_the_memory_in_decode_steps) {
  const auto run_with = [](const char* cluster, const char* host, double loads) {
    ServeRequest request = one_request("mixtral-8x7b", cluster, 4);
    config::add(request.engine, "expert_layer_host", config::text_node(host));
    config::add(request.engine, "expert_rate", config::real_node(loads));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? *run : results::Serving{};
  };
  const auto free = run_with("dgx-h100", "0 s", 1.0), slow = run_with("dgx-h100", "5 ms", 1.0);
  constexpr double kLayers = 32;
  EXPECT_LT(free.prefill.mean, kLayers * 5e-3);
  EXPECT_NEAR(slow.prefill.mean, kLayers * 5e-3, 2e-3);
  EXPECT_DOUBLE_EQ(slow.tpot.mean, free.tpot.mean);
  EXPECT_GT(run_with("dgx-h100", "0 s", 0.5).tpot.mean, 1.1 * free.tpot.mean);
  EXPECT_DOUBLE_EQ(run_with("dgx-b200", "0 s", 0.5).tpot.mean, run_with("dgx-b200", "0 s", 1.0).tpot.mean);
}

// The longer of both host times counts, and that of expert parallelism only with ep.
TEST(ApiServe, expert_parallelism_has_a_host_time_of_its_own_in_prompts) {
  const auto prefill_with = [](std::int64_t ep, const char* host, const char* parallel) {
    ServeRequest request = one_request("mixtral-8x7b", "dgx-b200", 4);
    request.scenario.ep = ep;
    config::add(request.engine, "expert_layer_host", config::text_node(host));
    config::add(request.engine, "expert_parallel_layer_host", serving_test::of_a_file(config::text_node(parallel)));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? run->prefill.mean : 0.0;
  };
  constexpr double kLayers = 32;
  EXPECT_NEAR(prefill_with(4, "5 ms", "8 ms"), kLayers * 8e-3, 2e-3);
  EXPECT_DOUBLE_EQ(prefill_with(4, "5 ms", "8 ms"), prefill_with(4, "8 ms", "5 ms"));
  EXPECT_NEAR(prefill_with(1, "5 ms", "8 ms"), kLayers * 5e-3, 2e-3);
}

// One request of three tokens or more in a captured graph: its two grouped GEMMs in each of 32 layers take longer by
// it.
TEST(ApiServe, a_decode_step_has_the_expert_latency_twice_a_layer) {
  const auto tpot_with = [](const char* latency) {
    ServeRequest request = one_request("mixtral-8x7b", "dgx-b200", 4);
    config::add(request.engine, "expert_latency", config::text_node(latency));
    return tpot_of(request);
  };
  EXPECT_NEAR(tpot_with("100 us") - tpot_with("0 s"), 32 * 2 * 100e-6, 1e-6);
}

// 20 clients keep a server that streams a token in 10 ms, or encodes one in 1 ms, busy; in 1 us neither is.
TEST(ApiServe, a_server_that_limits_a_deployment_is_named) {
  const auto run_with = [](const char* prompt, const char* token, std::int64_t interval = 1) {
    ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
    config::add(request.engine, "stream_interval", config::integer_node(interval));
    request.scenario.concurrency = 20;
    request.scenario.requests = 200;
    config::add(request.engine, "prompt_host", config::text_node(prompt));
    config::add(request.engine, "token_host", config::text_node(token));
    config::add(request.engine, "tokenizer_batch", config::integer_node(1));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? *run : results::Serving{};
  };
  const auto streams = run_with("1 us", "10 ms"), encodes = run_with("1 ms", "1 us"), free = run_with("1 us", "1 us");
  EXPECT_THAT(streams.warnings, testing::ElementsAre(testing::HasSubstr("streams tokens")));
  EXPECT_NEAR(streams.pools.front().streaming, 1.0, 0.05);
  EXPECT_THAT(encodes.warnings, testing::ElementsAre(testing::HasSubstr("encodes tokens")));
  EXPECT_NEAR(encodes.pools.front().tokenising, 1.0, 0.05);
  EXPECT_LT(encodes.pools.front().streaming, 0.01);
  EXPECT_TRUE(free.warnings.empty());
  // Ten tokens that are sent together take the time of one.
  const auto together = run_with("1 us", "10 ms", 10), apart = run_with("1 us", "1 ms");
  EXPECT_EQ(together.tpot.mean, apart.tpot.mean);
  EXPECT_EQ(together.pools.front().streaming, apart.pools.front().streaming);
}

// Two tokens a request: the first is streamed by the prefill pool, and the decode pool's server has one to stream.
TEST(ApiServe, a_decode_pool_does_not_stream_first_tokens) {
  ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
  request.scenario.concurrency = 20;
  request.scenario.requests = 400;
  request.scenario.osl = 2;
  request.scenario.prefill_replicas = 1;
  request.scenario.replicas = 1;
  config::add(request.engine, "token_host", config::text_node("20 ms"));
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_EQ(run->pools.front().streaming, 0.0);
  EXPECT_LE(run->pools.back().streaming, 1.0);
  EXPECT_NEAR(run->pools.back().streaming, 20e-3 * run->requests_per_s, 1e-9);
}

// 32 layers. Graphs hide launches, however long these are.
TEST(ApiServe, a_decode_step_that_no_graph_captures_takes_its_launches) {
  const auto tpot_with = [](std::int64_t graph, const char* host) {
    ServeRequest request = one_request("llama-3.1-8b", "dgx-h100", 1);
    config::add(request.engine, "largest_graph", config::integer_node(graph));
    config::add(request.engine, "layer_host", config::text_node(host));
    config::add(request.engine, "step_host", config::text_node("2 ms"));
    config::add(request.engine, "sequence_host", config::text_node("0 s"));
    return tpot_of(request);
  };
  EXPECT_NEAR(tpot_with(0, "1 ms"), 32 * 1e-3 + 2e-3, 1e-6);
  EXPECT_DOUBLE_EQ(tpot_with(512, "1 ms"), tpot_with(512, "0 s"));
}

// Nine sequences run a graph of 16: the seven others use experts of their own, or none.
TEST(ApiServe, rows_that_pad_a_graph_use_experts_where_the_engine_routes_them) {
  const auto tpot_with = [](std::int64_t sequences, bool routed) {
    ServeRequest request = one_request("qwen3-30b-a3b", "dgx-h100", 1);
    request.scenario.concurrency = request.scenario.requests = sequences;
    config::add(request.engine, "routes_padding", config::boolean_node(routed));
    config::add(request.engine, "sequence_host", config::text_node("0 s"));
    return tpot_of(request);
  };
  EXPECT_DOUBLE_EQ(tpot_with(8, false), tpot_with(8, true));
  EXPECT_DOUBLE_EQ(tpot_with(16, false), tpot_with(16, true));
  EXPECT_LT(tpot_with(9, false), 0.9 * tpot_with(9, true));
  EXPECT_GT(tpot_with(9, false), tpot_with(8, false));
  EXPECT_NEAR(tpot_with(9, true), tpot_with(16, true), 0.02 * tpot_with(16, true));
}

// Shared experts and the second down-projection take their bytes and FLOPs, but no latency of their own.
TEST(ApiServe, a_second_stream_hides_latency_on_the_vendor_that_has_it) {
  const auto tpot_with = [](const char* cluster, bool branches) {
    ServeRequest request = one_request("deepseek-v2-lite", cluster, 1);
    config::add(request.engine, "overlap_branches", config::boolean_node(branches));
    return tpot_of(request);
  };
  EXPECT_LT(tpot_with("dgx-b200", true), tpot_with("dgx-b200", false));
  EXPECT_DOUBLE_EQ(tpot_with("mi300x-node", true), tpot_with("mi300x-node", false));
}

// Attention dp 4, one prompt: the other ranks have no tokens, so experts compute its tokens only, spread over all.
TEST(ApiServe, a_prompt_on_one_rank_of_attention_dp_costs_experts_its_own_tokens) {
  const auto prefill_of = [](double rate) {
    ServeRequest request = small_run();
    request.scenario.model = "mixtral-8x7b";
    request.scenario.cluster = "dgx-h100";
    request.scenario.tp = 1;
    request.scenario.attention_dp = 4;
    request.scenario.ep = 4;
    request.scenario.rate.reset();
    request.scenario.concurrency = 1;
    request.scenario.requests = 1;
    request.scenario.isl = 4000;
    config::add(request.engine, "expert_layer_host", config::text_node("0 s"));
    config::add(request.engine, "expert_math_rate", config::real_node(rate));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? run->prefill.mean : 0.0;
  };
  // 4,000 tokens with 2 of 8 experts of 3 x 4,096 x 14,336 weights in 32 layers, on 4 GPUs of 989 TFLOP/s at most.
  const double flops = 4000.0 * 2 * 3 * 2.0 * 4096 * 14336 * 32 / 4, least = flops / 989e12;
  const double slower = prefill_of(0.25) - prefill_of(1.0);  // three times the experts' time
  EXPECT_GT(slower, 3.0 * least);
  EXPECT_LT(slower, 2.0 * 3.0 * least);
}

// A rate for weight-only kernels replaces expert_math_rate where weights are stored narrower, and only there.
TEST(ApiServe, weight_only_experts_have_a_rate_of_their_own) {
  const auto prefill_of = [](std::optional<hardware::StorageFormat> weights, double older,
                             std::optional<double> weight_only) {
    ServeRequest request = one_request("mixtral-8x7b", "dgx-h100", 4);
    request.scenario.isl = 4000;
    request.scenario.weight_format = weights;
    config::add(request.engine, "expert_layer_host", config::text_node("0 s"));
    config::add(request.engine, "expert_math_rate", config::real_node(older));
    if (weight_only) { config::add(request.engine, "expert_weight_only_math_rate", config::real_node(*weight_only)); }
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? run->prefill.mean : 0.0;
  };
  const auto narrow = hardware::StorageFormat::int4;
  EXPECT_DOUBLE_EQ(prefill_of(narrow, 0.25, 0.5), prefill_of(narrow, 0.5, 0.5));
  EXPECT_LT(prefill_of(narrow, 0.25, 0.5), 0.8 * prefill_of(narrow, 0.25, 0.25));
  EXPECT_DOUBLE_EQ(prefill_of({}, 0.25, 0.5), prefill_of({}, 0.25, {}));
}

// Mixtral on four ranks holds two of eight experts a rank, with four copies three: 3 x 4,096 x 14,336 weights of two
// bytes in 32 layers less for the cache, whose blocks of 16 tokens have 2 MiB (and a router's columns half a block).
// Three ranks need a ninth expert to hold equally many; all three of them are read in a step, as with four ranks and
// copies.
TEST(ApiServe, copies_of_experts_take_the_memory_of_experts) {
  const auto pool_of = [](std::int64_t ranks, std::int64_t copies) {
    ServeRequest request = one_request("mixtral-8x7b", "dgx-h100", 1);
    request.scenario.attention_dp = request.scenario.ep = ranks;
    config::add(request.engine, "redundant_experts", config::integer_node(copies));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? run->pools.at(0) : results::ServingPool();
  };
  const results::ServingPool plain = pool_of(4, 0), copied = pool_of(4, 4);
  constexpr std::int64_t kExpert = std::int64_t{3} * 4096 * 14336 * 2 * 32 / (2 << 20);
  EXPECT_NEAR(static_cast<double>(plain.blocks - copied.blocks), 4.0 * kExpert, 4.0);
  EXPECT_EQ(plain.plan, "tp 1, attention dp 4, ep 4");
  EXPECT_EQ(copied.plan, "tp 1, attention dp 4, ep 4, redundant experts 4");
  EXPECT_EQ(pool_of(4, 3).plan, copied.plan);  // rounded up
  EXPECT_EQ(pool_of(3, 0).plan, "tp 1, attention dp 3, ep 3, redundant experts 1");
  ServeRequest whole = one_request("mixtral-8x7b", "dgx-h100", 4);
  config::add(whole.engine, "redundant_experts", config::integer_node(4));
  const auto refused = serve(ORRERY_SOURCE_DATA_DIR, whole);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), testing::HasSubstr("--redundant-experts: extra copies of experts need"));
  EXPECT_NEAR(static_cast<double>(pool_of(3, 0).blocks) / 3.0, static_cast<double>(copied.blocks) / 4.0, 4.0);
}

TEST(ApiServe, two_batches_overlap_where_tokens_travel_to_experts) {
  const auto answer = [](std::int64_t tp, std::int64_t ranks, const char* setting) {
    ServeRequest request = one_request("mixtral-8x7b", "dgx-h100", tp);
    request.scenario.attention_dp = request.scenario.ep = ranks;
    config::add(request.engine, setting, config::integer_node(2));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    return run ? run->pools.at(0).plan : run.error().text();
  };
  EXPECT_EQ(answer(1, 4, "two_batch_decodes"), "tp 1, attention dp 4, ep 4, two-batch overlap");
  EXPECT_EQ(answer(1, 4, "two_batch_prompts"), "tp 1, attention dp 4, ep 4, two-batch overlap");
  EXPECT_EQ(answer(4, 1, "two_batch_decodes"),
            "--two-batch-decodes: two batches need a model with experts, and --ep and attention dp above 1 in the pool "
            "that runs them: no iteration is divided");
}

TEST(ApiServe, two_batches_that_no_iteration_has_are_refused) {
  const auto refusal = [](const char* setting, std::int64_t least, const char* scheduler) {
    ServeRequest request = one_request("mixtral-8x7b", "dgx-h100", 1);
    request.scenario.attention_dp = request.scenario.ep = 4;
    config::add(request.engine, setting, config::integer_node(least));
    config::add(request.engine, "scheduler", config::text_node(scheduler));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    return run ? std::string() : run.error().text();
  };
  EXPECT_EQ(refusal("two_batch_decodes", 4000, "mixed"),
            "--two-batch-decodes: must be at most 1024 (--max-sequences), not 4000");
  EXPECT_EQ(refusal("two_batch_prompts", 9000, "mixed"),
            "--two-batch-prompts: must be at most 8192 (--max-batched-tokens), not 9000");
  EXPECT_EQ(refusal("two_batch_decodes", 64, "static"),
            "--two-batch-decodes: static batches are not divided; choose --scheduler mixed or prefill-first");
}

TEST(ApiServe, the_cache_takes_its_part_of_all_memory_or_of_what_weights_leave) {
  const auto blocks = [](double use, bool of_free) {
    ServeRequest request = small_run();
    config::add(request.engine, "memory_use", config::real_node(use));
    config::add(request.engine, "memory_of_free", config::boolean_node(of_free));
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(run.has_value()) << run.error().text();
    return run ? static_cast<double>(run->pools.front().blocks) : 0.0;
  };
  const double all = blocks(1.0, false);
  EXPECT_EQ(blocks(1.0, true), all);
  EXPECT_NEAR(blocks(0.5, true), 0.5 * all, 1.0);
  EXPECT_LT(blocks(0.5, false), 0.5 * all);
}

// Three servers of an L40S (8,500 USD in four years, 350 W) behind every answer. Dollars and watts: those of a million
// tokens and of a token, times the tokens of a second.
TEST(ApiServe, servers_of_stages_count_in_price_and_energy) {
  ServeRequest request = small_run();
  const auto plain = serve(ORRERY_SOURCE_DATA_DIR, request);
  serving::Stage guard;
  guard.name = "guard";
  guard.kind = serving::StageKind::embed;
  guard.place = serving::StagePlace::after_answer;
  guard.accelerator = "l40s";
  guard.parameters = 1e9;
  guard.servers = 3;
  request.scenario.stages = {guard};
  const auto staged = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(plain && staged);
  const auto usd = [](const results::Serving& s) { return *s.usd_per_million_tokens * s.output_tokens_per_s / 1e6; };
  const auto watts = [](const results::Serving& s) { return *s.joules_per_token * s.output_tokens_per_s; };
  EXPECT_NEAR(usd(*staged) - usd(*plain), 3 * 8500.0 / (4 * 365 * 24 * 3600.0), 1e-9);
  EXPECT_NEAR(watts(*staged) - watts(*plain), 3 * 350.0, 1e-6);
  EXPECT_EQ(staged->ttft.mean, plain->ttft.mean);
  EXPECT_NEAR(staged->e2e.mean - plain->e2e.mean, staged->stages[0].time.mean, 1e-9);
}

// A search on cores of a host has no price; the answer says so, and is that without the stage. 100 x
// log2(10^6) reads of 400 ns each.
TEST(ApiServe, stages_without_an_accelerator_are_left_out_of_the_price) {
  ServeRequest request = small_run();
  serving::Stage search;
  search.name = "search";
  search.kind = serving::StageKind::retrieve;
  search.vectors = 1e6;
  search.ef = 100;
  request.scenario.stages = {search};
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_FALSE(run->stages[0].usd_per_second || run->stages[0].watts);
  EXPECT_NEAR(run->stages[0].time.p50, 100 * std::log2(1e6) * 400e-9, 1e-9);
  EXPECT_EQ(run->not_modelled.back(), "price and energy of stages that name no accelerator (search)");
}

// Keys and values of a token of Llama 3.1 8B are 131,072 B, whatever the degrees: 1,000 tokens at 1 GB/s take 131 ms.
TEST(ApiServe, a_store_sends_the_keys_and_values_of_the_whole_model) {
  for (const std::int64_t tp : {1, 4}) {
    ServeRequest request = small_run();
    request.scenario.tp = tp;
    request.scenario.isl = 1200;
    serving::Stage store;
    store.kind = serving::StageKind::kv_retrieval;
    store.bandwidth = BytesPerSecond(1e9);
    store.hit_rate = 1.0;
    store.servers = 100;
    store.prefix_tokens = 1000;
    request.scenario.stages = {store};
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    ASSERT_TRUE(run.has_value()) << run.error().text();
    EXPECT_NEAR(run->stages[0].time.p50, 1000 * 131072.0 / 1e9, 1e-9);
    EXPECT_NEAR(run->prefix_hit_rate, 1000.0 / 1200.0, 1e-12);
    EXPECT_EQ(*run->stages[0].retrieved_tokens, 200 * 1000);
  }
}

// Prompts of 512 tokens are 16 blocks of 32, which four branches share. Each of them has one block for its output of 32
// tokens, of which the last is never in the cache.
TEST(ApiServe, branches_share_whole_blocks_of_any_engine) {
  for (const auto& [engine, block] : {std::pair{"vllm-v1", 16}, {"tensorrt-llm", 32}, {"sglang", 1}}) {
    ServeRequest request = small_run();
    request.scenario.engine = engine;
    request.scenario.requests = 1;
    request.scenario.branches = 4;
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    ASSERT_TRUE(run.has_value()) << run.error().text();
    const double blocks = run->kv_peak * static_cast<double>(run->pools[0].blocks);
    EXPECT_NEAR(blocks, 512.0 / block + 4 * std::ceil(31.0 / block), 1e-6) << engine;
  }
}

TEST(ApiServe, tokens_of_all_branches_count_as_output) {
  ServeRequest request = small_run();
  request.scenario.branches = 3;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  ASSERT_TRUE(run->branches.has_value());
  EXPECT_EQ(run->requests, 200);
  EXPECT_EQ(run->branches->generated_tokens, 3 * 200 * 32);
  EXPECT_NEAR(run->output_tokens_per_s * run->duration_s, 3 * 200 * 32, 1e-6);
  EXPECT_EQ(run->branches->cached_tokens, 2 * 200 * 511);  // the last token of a prompt is always computed
}

TEST(ApiServe, predictions_have_ranges) {
  ServeRequest request = small_run();
  ASSERT_EQ(serve(ORRERY_SOURCE_DATA_DIR, request)->ranges.size(), 2U);  // the throughput of an open loop is its load
  request.scenario.rate.reset();
  request.scenario.concurrency = 8;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value());
  ASSERT_EQ(run->ranges.size(), 3U);
  for (const auto& range : run->ranges) { EXPECT_TRUE(0.0 < range.p10 && range.p10 < range.p90) << range.metric; }
}

// A row of a request with branches has all their tokens and preemptions, and the TPOT of the branch that ends last.
TEST(ApiServe, rows_of_requests_with_branches_sum_to_the_answer) {
  ServeRequest request = small_run();
  request.each = true;
  request.scenario.requests = 40;
  request.scenario.length_cv = 0.5;
  request.scenario.osl = 200;
  request.scenario.branches = 4;
  request.scenario.join = 3;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  ASSERT_GT(run->branches->cut_tokens, 0);
  std::int64_t tokens = 0, preemptions = 0;
  double tpot = 0, ttft = 0;
  for (const auto& row : run->each) {
    tokens += row.output;
    preemptions += row.preemptions;
    ttft += row.first_token_s - row.arrival_s + run->request_overhead_s;
    tpot += (row.last_token_s - row.last_branch_first_token_s) / static_cast<double>(row.last_branch_output - 1);
  }
  EXPECT_EQ(tokens, run->branches->generated_tokens);
  EXPECT_EQ(preemptions, run->preemptions);
  EXPECT_NEAR(tpot / 40, run->tpot.mean, 1e-9);
  EXPECT_NEAR(ttft / 40, run->ttft.mean, 1e-9);
}

// Every lookup hits: 150 of 200 requests are measured.
TEST(ApiServe, hits_of_a_store_are_of_measured_requests) {
  ServeRequest request = small_run();
  serving::Stage store;
  store.name = "store";
  store.kind = serving::StageKind::kv_retrieval;
  store.hit_rate = 1.0;
  store.prefix_tokens = 100;
  request.scenario.stages = {store};
  request.scenario.warm_up = 0.25;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_EQ(run->stages[0].passed, 150);
  EXPECT_EQ(*run->stages[0].hits, 150);
  EXPECT_EQ(*run->stages[0].retrieved_tokens, 15'000);
}

}  // namespace
}  // namespace orrery::api::serve_test
