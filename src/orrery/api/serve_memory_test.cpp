// What weights, activations and cache take of an accelerator's memory.
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
