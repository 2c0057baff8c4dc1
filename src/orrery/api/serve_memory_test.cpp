// What weights, activations and cache take of an accelerator's memory.
#include <cmath>
#include <optional>

#include <gmock/gmock.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"
#include "orrery/serving/engine_settings.hpp"

namespace orrery::api::serve_memory_test {
namespace {

using testing::HasSubstr;

constexpr Bytes kEightyGiB{80.0 * 1073741824.0};  // 81,920 MiB

// 512 + 1.5 x 8,192 + 2 x 256 + 1,024 / 8 = 13,440 MiB.
TEST(StaticPart, is_what_activations_graphs_and_ranks_leave) {
  serving::EngineSettings settings;
  settings.max_batched_tokens = 8192;
  EXPECT_DOUBLE_EQ(serving::static_part(settings, kEightyGiB, 1, 1, 1), (81920.0 - 13440.0) / 81920.0);
  // 512 + 12,288 + 2 x 512 + 1,024 = 14,848 MiB.
  EXPECT_DOUBLE_EQ(serving::static_part(settings, kEightyGiB, 8, 1, 1), (81920.0 - 14848.0) / 81920.0);
  // + 4.5 x 512 x 8 = 18,432 MiB.
  EXPECT_DOUBLE_EQ(serving::static_part(settings, kEightyGiB, 8, 1, 8), (81920.0 - 33280.0) / 81920.0);
  // 512 + 3,072 + 512 + 128 MiB are less than 10 GiB.
  settings.max_batched_tokens = 512;
  EXPECT_DOUBLE_EQ(serving::static_part(settings, kEightyGiB, 1, 1, 1), 0.875);
  settings.speculative_tokens = 2;
  EXPECT_DOUBLE_EQ(serving::static_part(settings, kEightyGiB, 1, 1, 1), 0.85);
}

ServeRequest run_with(const char* engine, std::int64_t tokens, std::optional<double> memory_use = {}) {
  ServeRequest request = serving_test::small_run();
  request.scenario.engine = engine;
  config::add(request.engine, "max_batched_tokens", config::integer_node(tokens));
  if (memory_use) { config::add(request.engine, "memory_use", config::real_node(*memory_use)); }
  return request;
}

std::int64_t tokens_of(const ServeRequest& request) {
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  EXPECT_TRUE(run.has_value()) << run.error().text();
  return run ? run->pools.front().blocks * run->pools.front().block_tokens : 0;
}

ServeRequest small_job() {
  ServeRequest request = serving_test::small_run();
  request.scenario.requests = 10;
  return request;
}

ServeRequest with_model(ServeRequest request, const char* model) {
  request.scenario.model = model;
  return request;
}

TEST(ServeMemory, activations_of_a_whole_budget_are_no_cache) {
  const std::int64_t some = tokens_of(run_with("vllm-v1", 16'384)), many = tokens_of(run_with("vllm-v1", 65'536));
  EXPECT_GT(some - many, 10'000);  // until now both were those of 16,384 tokens
  // Not the logits of every token: 49,152 tokens more are at most 100 KiB each, as 0.8 tokens of the cache.
  EXPECT_LT(some - many, 40'000);
  EXPECT_GT(tokens_of(with_model(run_with("vllm-v1", 262'144), "qwen2.5-0.5b")), 0);
}

// States of recurrent layers are no activations.
TEST(ServeMemory, activations_of_prompts_take_of_a_hybrid_models_cache) {
  const auto tokens = [](std::int64_t budget) {
    ServeRequest request = with_model(run_with("vllm-v1", budget), "nemotron-h-56b");
    request.scenario.tp = 8;
    return tokens_of(request);
  };
  EXPECT_GT(tokens(8'192), tokens(65'536));
  EXPECT_GT(tokens(65'536), tokens(262'144));
}

TEST(ServeMemory, activations_take_of_the_rest_of_a_static_part) {
  const ServeRequest some = run_with("sglang", 16'384, 0.8), many = run_with("sglang", 65'536, 0.8);
  EXPECT_EQ(tokens_of(some), tokens_of(many));
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, run_with("sglang", 1'000'000, 0.8));
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_THAT(run->warnings, testing::Contains(HasSubstr("for activations of 1,000,000 tokens")));
}

TEST(ServeMemory, follows_from_the_chunk_by_default) {
  // 1.5 MiB a token more: 12 GiB of 8,192 tokens, at 128 KiB of keys and values for each token of Llama 3.1 8B.
  const std::int64_t more = tokens_of(run_with("sglang", 8192)) - tokens_of(run_with("sglang", 16'384));
  EXPECT_NEAR(static_cast<double>(more), 12.0 * 1073741824.0 / 131072.0, 2.0);
}

// Of 32 layers, the fullest of five stages has seven, of 4,096 bytes a token each.
TEST(ServeMemory, the_cache_is_that_of_the_stage_that_keeps_most) {
  const auto bytes = [](std::int64_t pp) {
    ServeRequest small = with_model(small_job(), "llama-3.1-8b"), large = small;
    small.scenario.pp = large.scenario.pp = pp;
    config::add(small.engine, "memory_use", config::real_node(0.5));
    config::add(large.engine, "memory_use", config::real_node(0.75));
    constexpr double kQuarter = 0.25 * 79.6 * 1073741824.0;
    return kQuarter / static_cast<double>(tokens_of(large) - tokens_of(small));
  };
  EXPECT_NEAR(bytes(5), 7 * 4096.0, 0.02 * 7 * 4096.0);
  EXPECT_NEAR(bytes(4), 8 * 4096.0, 0.02 * 8 * 4096.0);
}

ServeRequest windows(const char* model, const char* engine) {
  ServeRequest request = with_model(small_job(), model);
  request.scenario.engine = engine;
  return request;
}

// Gemma 3 27B with vLLM on one H100.
ServeRequest many_clients(std::int64_t clients, std::int64_t requests, std::int64_t isl, std::int64_t osl) {
  ServeRequest request = windows("gemma-3-27b", "vllm-v1");
  request.scenario.isl = isl;
  request.scenario.osl = osl;
  request.scenario.rate.reset();
  request.scenario.concurrency = clients;
  request.scenario.requests = requests;
  return request;
}

ServeRequest keeps_all(ServeRequest request) {
  config::add(request.engine, "frees_windows", config::boolean_node(false));
  return request;
}

// Of 62 layers of Gemma 3 27B, ten attend to all positions; of 36 of gpt-oss, 18; of Mistral 7B none, so that all are
// kept.
TEST(ServeMemory, layers_with_windows_take_no_blocks_behind_them) {
  const auto ratio = [](const ServeRequest& request) {
    return static_cast<double>(tokens_of(request)) / static_cast<double>(tokens_of(keeps_all(request)));
  };
  EXPECT_NEAR(ratio(windows("gemma-3-27b", "vllm-v1")), 6.2, 0.01);
  EXPECT_NEAR(ratio(windows("gpt-oss-20b", "vllm-v1")), 2.0, 0.001);
  EXPECT_FALSE(serve(ORRERY_SOURCE_DATA_DIR, keeps_all(windows("mistral-7b", "vllm-v1"))).has_value());
}

// A request of 8,192 + 128 tokens: 520 blocks of 16, and 65 for each of six groups of ten layers with windows: 910.
// With all positions 520 x 6.2 = 3,224.
TEST(ServeMemory, more_long_requests_run_at_a_time_where_windows_are_freed) {
  ServeRequest request = many_clients(64, 64, 8192, 128);
  config::add(request.engine, "reserve", config::text_node("whole"));
  const auto most = [](ServeRequest of, std::int64_t blocks) {
    config::add(of.engine, "blocks", config::integer_node(blocks));
    const results::Serving run = serving_test::run_of(of);
    return std::llround(run.kv_peak * static_cast<double>(blocks));
  };
  EXPECT_EQ(most(request, 3 * 910 - 1), 2 * 910);
  EXPECT_EQ(most(request, 3 * 910), 3 * 910);
  EXPECT_EQ(most(keeps_all(request), 2 * 520), 2 * 520);  // blocks of all layers
}

// Short answers to short prompts never leave the windows; seven blocks for each 16 tokens of Gemma 3 27B, of a tenth
// more memory than all 62 layers take.
TEST(ServeMemory, freeing_windows_costs_what_groups_of_layers_are_filled_up_with) {
  ServeRequest request = many_clients(300, 900, 100, 400);
  const double freed = serving_test::run_of(request).output_tokens_per_s;
  const double kept = serving_test::run_of(keeps_all(request)).output_tokens_per_s;
  EXPECT_GT(freed, 0.85 * kept);
  EXPECT_LT(freed, 1.02 * kept);
}

// Prompts with the same prefix share its blocks, and have windows of their own behind it.
TEST(ServeMemory, requests_with_a_prefix_have_windows_behind_it) {
  ServeRequest request = many_clients(400, 800, 2100, 100);
  request.scenario.prefix_groups = 1;
  request.scenario.prefix_tokens = 2000;
  EXPECT_GT(serving_test::run_of(request).output_tokens_per_s,
            0.9 * serving_test::run_of(keeps_all(request)).output_tokens_per_s);
}

// Block ids that nobody shares change nothing but what is found again.
TEST(ServeMemory, windows_of_cached_prompts_count) {
  ServeRequest request = many_clients(200, 400, 4000, 300);
  const double without = serving_test::run_of(request).output_tokens_per_s;
  request.scenario.prefix_groups = 1'000'000;
  request.scenario.prefix_tokens = 4000;
  EXPECT_NEAR(serving_test::run_of(request).output_tokens_per_s, without, 0.02 * without);
}

TEST(ServeMemory, windows_are_freed_only_where_there_are_some) {
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, keeps_all(with_model(small_job(), "llama-3.1-8b")));
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().text(), HasSubstr("--no-frees-windows: has an effect only with one pool of engines "));
}

// Keys and values of a request are on one rank.
TEST(ServeMemory, a_request_has_room_on_one_rank) {
  ServeRequest request = with_model(small_job(), "deepseek-v2-lite");
  request.scenario.attention_dp = request.scenario.ep = 8;
  request.scenario.isl = 8000;
  config::add(request.engine, "blocks", config::integer_node(800));  // 100 of 16 tokens on each rank
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().text(), HasSubstr("has 8000 + 32 tokens: the cache of a rank holds 1600"));
}

// NVFP4 has an 8-bit scale for 16 weights: 671 billion weights, of which 654 are experts', take over 343 GiB.
TEST(ServeMemory, weights_in_four_bits_have_scales) {
  ServeRequest request = with_model(small_job(), "deepseek-r1");
  request.scenario.cluster = "dgx-b200";
  request.scenario.precision = hardware::Precision::fp4;
  request.scenario.tp = 2;
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().text(), HasSubstr("deepseek-r1 does not fit: weights take 182 GiB"));
}

TEST(ServeMemory, too_little_is_an_error) {
  const auto message = [](const ServeRequest& request) {
    const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
    return run ? std::string() : run.error().text();
  };
  EXPECT_THAT(message(run_with("vllm-v1", 8192, 0.0)), HasSubstr("--memory-use: 0 is not a part of memory"));
  EXPECT_THAT(message(run_with("sglang", 8192, 0.01)), HasSubstr("or 0 for the engine's default"));
  EXPECT_THAT(message(run_with("vllm-v1", 1'000'000)), HasSubstr("and activations of 1,000,000 tokens"));
}

}  // namespace
}  // namespace orrery::api::serve_memory_test
