#include "orrery/serving/program_price.hpp"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/serving/deployment.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::serving::program_price_test {
namespace {

struct Built {
  workload::Model model;
  std::unique_ptr<BuiltPool> pool;
};

// An engine of a catalogue model, by default on nodes of 8 H100.
std::unique_ptr<Built> built(const std::string& model, EngineSettings settings, const Degrees& degrees,
                             const parallel::Job& job = {}, const std::string& cluster = "dgx-h100") {
  auto built = std::make_unique<Built>();
  hardware::Catalogue catalogue(ORRERY_SOURCE_DATA_DIR);
  built->model = std::move(*workload::load_model(ORRERY_SOURCE_DATA_DIR, model, {}));
  PoolInputs inputs;
  inputs.name = "engine";
  inputs.model = &built->model;
  inputs.cluster = std::move(*catalogue.cluster(cluster, degrees.gpus_of_engine()));
  inputs.stack = std::move(*catalogue.stack(settings.stack));
  inputs.settings = std::move(settings);
  inputs.degrees = degrees;
  inputs.job = job;
  auto pool = BuiltPool::build(std::move(inputs));
  EXPECT_TRUE(pool) << pool.error().text();
  built->pool = std::move(*pool);
  return built;
}

EngineSettings profile(const char* name) { return std::move(*load_engine(ORRERY_SOURCE_DATA_DIR, name)); }

Degrees degrees_of(std::int64_t tp, std::int64_t pp, std::int64_t attention_dp) {
  Degrees degrees;
  degrees.tp = tp;
  degrees.pp = pp;
  degrees.attention_dp = attention_dp;
  return degrees;
}

// The line of a decode step, which is the price of each later step up to its end.
DecodeLine checked_line(ProgramPrice& price, std::int64_t sequences, std::int64_t contexts) {
  const DecodeLine line = price.decode(sequences, contexts);
  RC_ASSERT(line.last >= contexts && line.at > 0 && line.per_token >= 0);
  for (const std::int64_t later : {contexts + 1, (contexts + line.last) / 2, line.last}) {
    if (later > line.last) { continue; }
    RC_ASSERT(price.decode(sequences, later).at == line.at + line.per_token * (later - contexts));
  }
  return line;
}

// What an aggregated run rests on: the line that is asked for once is the price of each later step up to its end. Short
// contexts are bound by launches where nothing is captured, long ones by the device.
RC_GTEST_PROP(ProgramPrice, lines_of_decode_steps_are_the_prices_of_their_steps, ()) {
  EngineSettings settings = profile("vllm-v1");
  settings.largest_graph = *rc::gen::element(0, 5, 512);
  settings.layer_host = Seconds(*rc::gen::element(0.0, 0.1e-3, 0.4e-3));
  settings.speculative_tokens = *rc::gen::element(0, 3);
  const auto degrees = *rc::gen::element(degrees_of(1, 1, 1), degrees_of(2, 2, 1), degrees_of(1, 1, 2));
  const auto engine = built("llama-3.1-8b", settings, degrees);
  ProgramPrice& price = engine->pool->price();
  const auto sequences = *rc::gen::inRange<std::int64_t>(1, 40);
  const std::int64_t contexts = sequences * *rc::gen::inRange<std::int64_t>(1, 40000);
  checked_line(price, sequences, contexts);
}

EngineSettings in_two_batches() {
  EngineSettings settings = profile("sglang-deepep");
  settings.two_batch_decodes = settings.two_batch_prompts = 2;
  settings.expert_imbalance = 1.0;
  return settings;
}

// Halves of small batches read the same weights twice. LMSYS, 72 H100: 27 % slower with 32 sequences each, as fast
// between 64 and 128, 25.5 % faster with 256; prompts 27 to 35 % faster.
TEST(ProgramPrice, large_batches_gain_from_two_halves) {
  Degrees degrees = degrees_of(1, 1, 72);
  degrees.ep = 72;
  EngineSettings whole = in_two_batches();
  whole.two_batch_decodes = whole.two_batch_prompts = 0;
  const auto two = built("deepseek-v3", in_two_batches(), degrees), one = built("deepseek-v3", whole, degrees);
  const auto ratio = [&](std::int64_t each) {
    const std::int64_t sequences = 72 * each, contexts = sequences * 2000;
    const double halves = seconds_of(two->pool->price().decode(sequences, contexts).at);
    return seconds_of(one->pool->price().decode(sequences, contexts).at) / halves;
  };
  EXPECT_LT(ratio(32), 0.9);
  EXPECT_LT(ratio(64), 1.0);
  EXPECT_GT(ratio(128), 1.0);
  EXPECT_GT(ratio(256), 1.2);
  const auto prompts = [](const Built& engine) {
    const std::vector<Chunk> chunks(144, Chunk{4096, 0});
    return seconds_of(engine.pool->price().mixed({chunks, 0, 0, 144}));
  };
  EXPECT_GT(prompts(*one) / prompts(*two), 1.25);
  EXPECT_LT(two->pool->memory().activations, 0.6 * one->pool->memory().activations);
}

// Nothing travels with tp alone: the thresholds change nothing.
TEST(ProgramPrice, engines_that_send_no_tokens_are_not_divided) {
  EngineSettings whole = in_two_batches();
  whole.two_batch_decodes = whole.two_batch_prompts = 0;
  const auto two = built("mixtral-8x7b", in_two_batches(), degrees_of(4, 1, 1)),
             one = built("mixtral-8x7b", whole, degrees_of(4, 1, 1));
  EXPECT_FALSE(two->pool->overlaps(true) || two->pool->overlaps(false));
  EXPECT_EQ(two->pool->price().decode(64, 64'000).at, one->pool->price().decode(64, 64'000).at);
  const std::vector<Chunk> chunks(2, Chunk{1024, 0});
  EXPECT_EQ(two->pool->price().mixed({chunks, 64, 64'000, 66}), one->pool->price().mixed({chunks, 64, 64'000, 66}));
  EXPECT_EQ(two->pool->memory().activations, one->pool->memory().activations);
}

// An iteration with prompts is divided by its own threshold, decodes and all; launches take twice the host.
TEST(ProgramPrice, iterations_with_prompts_are_divided_as_a_whole) {
  Degrees degrees = degrees_of(1, 1, 72);
  degrees.ep = 72;
  EngineSettings both = in_two_batches();
  both.expert_layer_host = Seconds(0);
  EngineSettings prompts = both, decodes = both, never = both;
  prompts.two_batch_decodes = decodes.two_batch_prompts = never.two_batch_decodes = never.two_batch_prompts = 0;
  const auto time = [&](const EngineSettings& settings, std::int64_t tokens) {
    const std::vector<Chunk> chunks(72, Chunk{tokens, 0});
    const std::int64_t sequences = 72 * 256;
    return built("deepseek-v3", settings, degrees)->pool->price().mixed({chunks, sequences, sequences * 2000, 72});
  };
  EXPECT_EQ(time(decodes, 16), time(never, 16));
  EXPECT_LT(time(prompts, 16), time(never, 16));
  EXPECT_EQ(time(prompts, 16), time(both, 16));
  never.expert_layer_host = prompts.expert_layer_host = Seconds(20e-3);
  EXPECT_NEAR(static_cast<double>(time(prompts, 512)) / static_cast<double>(time(never, 512)), 2.0, 0.01);
}

RC_GTEST_PROP(ProgramPrice, lines_and_parts_of_two_halves_are_their_steps, ()) {
  EngineSettings settings = in_two_batches();
  settings.largest_graph = *rc::gen::element(0, 5, 512);
  settings.speculative_tokens = *rc::gen::element(0, 2);
  Degrees degrees = degrees_of(1, 1, 4);
  degrees.ep = 4;
  const auto engine = built("qwen3-30b-a3b", settings, degrees);
  ProgramPrice& price = engine->pool->price();
  const auto sequences = *rc::gen::inRange<std::int64_t>(1, 800);
  const std::int64_t contexts = sequences * *rc::gen::inRange<std::int64_t>(1, 40000);
  const DecodeLine line = checked_line(price, sequences, contexts);
  const DecodeParts parts = price.decode_parts(sequences, contexts);
  RC_ASSERT(std::abs(parts.sum().value() - seconds_of(line.at)) < 1e-9 * seconds_of(line.at));
  RC_ASSERT(parts.collectives >= Seconds(0) && parts.host >= Seconds(0));
}

// Parts of a decode step: none is negative, and they are its time.
RC_GTEST_PROP(ProgramPrice, parts_of_decode_steps_are_their_time, ()) {
  EngineSettings settings = profile(*rc::gen::element("vllm-v1", "sglang"));
  settings.largest_graph = *rc::gen::element(0, 5, 512);
  settings.speculative_tokens = *rc::gen::element(0, 3);
  const auto degrees = *rc::gen::element(degrees_of(1, 1, 1), degrees_of(2, 2, 1), degrees_of(1, 1, 2));
  const auto engine = built(*rc::gen::element("llama-3.1-8b", "qwen3-30b-a3b"), settings, degrees);
  ProgramPrice& price = engine->pool->price();
  const auto sequences = *rc::gen::inRange<std::int64_t>(1, 40);
  const std::int64_t contexts = sequences * *rc::gen::inRange<std::int64_t>(1, 40000);
  const DecodeParts parts = price.decode_parts(sequences, contexts);
  const double time = seconds_of(price.decode(sequences, contexts).at);
  RC_ASSERT(std::abs(parts.sum().value() - time) < 1e-9 * time);
  for (const Seconds part : {parts.gemms, parts.attention, parts.others, parts.collectives, parts.drafts, parts.host}) {
    RC_ASSERT(part >= Seconds(0));
  }
  RC_ASSERT((parts.drafts > Seconds(0)) == (settings.speculative_tokens > 0));
}

// A rank with one expert runs the kernel of several: the same work takes about as long as with two experts a rank.
TEST(ProgramPrice, one_expert_a_rank_has_the_kernel_of_several) {
  const auto time_with = [](std::int64_t ep) {
    Degrees degrees = degrees_of(8, 1, 1);
    degrees.ep = ep;
    const auto engine = built("mixtral-8x7b", profile("vllm-v1"), degrees);
    return seconds_of(engine->pool->price().decode(64, 64 * 1000).at);
  };
  EXPECT_NEAR(time_with(8) / time_with(4), 1.0, 0.03);
}

// Older software of models with experts: what the device does in a decode step takes longer, the host does not.
TEST(ProgramPrice, older_software_decodes_models_with_experts_more_slowly) {
  EngineSettings now = profile("sglang"), older = now;
  now.age_slowdown = older.age_slowdown = 0.02;
  older.software_age = 10.0;
  const auto parts = [](const char* model, const EngineSettings& settings) {
    return built(model, settings, degrees_of(1, 1, 1))->pool->price().decode_parts(16, 16 * 1000);
  };
  const double slower = std::pow(1.02, 10.0);
  const DecodeParts first = parts("qwen3-30b-a3b", now), second = parts("qwen3-30b-a3b", older);
  EXPECT_NEAR(second.gemms / first.gemms, slower, 1e-9);
  EXPECT_NEAR(second.attention / first.attention, slower, 1e-9);
  EXPECT_NEAR(second.host.value(), first.host.value(), 1e-9);
  EXPECT_NEAR(parts("llama-3.1-8b", older).sum().value(), parts("llama-3.1-8b", now).sum().value(), 1e-12);
}

// All host times of an engine are longer on nodes whose processors are slower, whatever the device does.
TEST(ProgramPrice, slower_hosts_take_longer) {
  EngineSettings settings = profile("vllm-v0");
  settings.largest_graph = 0;  // launches bound a decode step
  settings.layer_host = Seconds(2e-3);
  settings.prompt_host = Seconds(5e-6);
  settings.draft_host = settings.sequence_host = settings.transfer_layer_host = Seconds(1e-5);
  const auto slow = built("llama-3.1-8b", settings, degrees_of(1, 1, 1), {}, "dgx-a100");
  const auto fast = built("llama-3.1-8b", settings, degrees_of(1, 1, 1));
  const double slowdown = slow->pool->inputs().cluster.host_slowdown;
  EXPECT_GT(slowdown, 1.0);
  EXPECT_EQ(fast->pool->inputs().cluster.host_slowdown, 1.0);
  const auto ratio = [](Ticks a, Ticks b) { return static_cast<double>(a) / static_cast<double>(b); };
  EXPECT_NEAR(ratio(slow->pool->price().decode(4, 4000).at, fast->pool->price().decode(4, 4000).at), slowdown, 1e-6);
  EXPECT_NEAR(ratio(slow->pool->shape().step_host, fast->pool->shape().step_host), slowdown, 1e-6);
  EXPECT_NEAR(ratio(slow->pool->shape().prompt_host, fast->pool->shape().prompt_host), slowdown, 1e-6);
}

TEST(with_slower_host, multiplies_every_time_of_the_host) {
  EngineSettings settings = profile("sglang");
  for (Seconds* host : {&settings.step_host, &settings.layer_host, &settings.expert_parallel_layer_host}) {
    *host = Seconds(1e-3);
  }
  const EngineSettings slow = with_slower_host(settings, 2.0);
  const auto hosts = [](const EngineSettings& s) {
    return std::vector<double>{
        s.step_host.value(),           s.layer_host.value(),  s.expert_layer_host.value(),
        s.sequence_host.value(),       s.draft_host.value(),  s.expert_parallel_layer_host.value(),
        s.transfer_layer_host.value(), s.prompt_host.value(), s.token_host.value()};
  };
  for (std::size_t k = 0; k < hosts(settings).size(); ++k) {
    EXPECT_GT(hosts(settings)[k], 0.0) << k;
    EXPECT_DOUBLE_EQ(hosts(slow)[k], 2.0 * hosts(settings)[k]) << k;
  }
  EXPECT_EQ(slow.request_overhead, settings.request_overhead);
  EXPECT_EQ(slow.transfer_setup, settings.transfer_setup);
  EXPECT_EQ(slow.expert_latency, settings.expert_latency);
}

// Prompts never shorten an iteration, whatever grid points and blocks lie between, and older software never does. (A
// last token joins the decode step.)
RC_GTEST_PROP(ProgramPrice, iterations_with_prompts_take_at_least_their_decode_steps, ()) {
  EngineSettings settings = profile(*rc::gen::element("vllm-v1", "sglang"));
  settings.largest_graph = *rc::gen::element(0, 512);
  settings.expert_block_rows = *rc::gen::element(8, 16, 64, 256);
  settings.speculative_tokens = *rc::gen::element(0, 0, 2);
  settings.age_slowdown = 0.03;
  const auto degrees = *rc::gen::element(degrees_of(1, 1, 1), degrees_of(2, 1, 1), degrees_of(1, 1, 2));
  const std::string model = *rc::gen::element("qwen3-30b-a3b", "deepseek-v2-lite", "llama-3.1-8b");
  EngineSettings older = settings;
  older.software_age = *rc::gen::element(6.0, 24.0);
  const auto now = built(model, settings, degrees), then = built(model, older, degrees);
  const auto sequences = *rc::gen::inRange<std::int64_t>(1, 300);
  const std::int64_t contexts = sequences * *rc::gen::inRange<std::int64_t>(1, 5000);
  const std::vector<Chunk> chunks = {
      {*rc::gen::inRange<std::int64_t>(2, 600), *rc::gen::inRange<std::int64_t>(0, 900)}};
  const MixedStep step{chunks, sequences, contexts, sequences + 1};
  ProgramPrice &first = now->pool->price(), &second = then->pool->price();
  RC_ASSERT(first.mixed(step) >= first.decode(sequences, contexts).at);
  RC_ASSERT(second.mixed(step) >= second.decode(sequences, contexts).at);
  RC_ASSERT(second.mixed(step) >= first.mixed(step));
}

// Prompts take longer as decode steps do, and sequences with a prompt are never faster than without.
TEST(ProgramPrice, older_software_is_slower_in_iterations_with_prompts) {
  EngineSettings now = profile("sglang"), older = now;
  for (EngineSettings* settings : {&now, &older}) {
    settings->age_slowdown = 0.03;
    settings->expert_layer_host = settings->sequence_host = {};
  }
  older.software_age = 12.0;
  const auto engines =
      std::pair(built("qwen3-30b-a3b", now, degrees_of(1, 1, 1)), built("qwen3-30b-a3b", older, degrees_of(1, 1, 1)));
  ProgramPrice &first = engines.first->pool->price(), &second = engines.second->pool->price();
  const std::int64_t sequences = 60, contexts = 60 * 1000;
  Ticks before = second.decode(sequences, contexts).at;
  for (const std::int64_t tokens : {2, 16, 64, 1000}) {
    const std::vector<Chunk> chunks = {{tokens, 0}};
    const MixedStep step{chunks, sequences, contexts, sequences + 1};
    EXPECT_NEAR(static_cast<double>(second.mixed(step)) / static_cast<double>(first.mixed(step)), std::pow(1.03, 12.0),
                1e-6);
    EXPECT_GE(second.mixed(step), before) << tokens;
    before = second.mixed(step);
  }
}

// Blocks of fewer rows: an iteration in which an expert has few tokens is shorter, one with thousands is not; on
// accelerators with 4-bit units it has no effect. With ep above 1 the larger of the two figures counts.
TEST(ProgramPrice, blocks_of_grouped_gemms_are_those_of_the_engine) {
  const auto decode = [](const char* cluster, std::int64_t rows, std::int64_t parallel_rows, std::int64_t ep) {
    EngineSettings settings = profile("sglang");
    settings.expert_block_rows = rows;
    settings.expert_parallel_block_rows = parallel_rows;
    Degrees degrees = degrees_of(4, 1, 1);
    degrees.ep = ep;
    return built("qwen3-30b-a3b", settings, degrees, {}, cluster)->pool->price().decode(8, 8 * 1000).at;
  };
  EXPECT_LT(decode("dgx-h200", 16, 0, 1), decode("dgx-h200", 64, 0, 1));
  EXPECT_EQ(decode("dgx-h200", 16, 64, 1), decode("dgx-h200", 16, 0, 1));
  EXPECT_EQ(decode("dgx-h200", 16, 64, 4), decode("dgx-h200", 64, 0, 4));
  EXPECT_LT(decode("dgx-h200", 16, 0, 4), decode("dgx-h200", 64, 0, 4));
  EXPECT_EQ(decode("dgx-b200", 16, 0, 1), decode("dgx-b200", 64, 0, 1));
}

// Keys and values of prompts are projected from the weights as stored, decode steps have copies in 16 bits.
TEST(ProgramPrice, absorbed_weights_take_memory) {
  EngineSettings with = profile("vllm-v1"), without = with;
  without.wide_absorption = false;
  const auto weights = [](const EngineSettings& settings) {
    return built("deepseek-v2-lite", settings, degrees_of(2, 1, 1))->pool->memory().weights.value();
  };
  EXPECT_DOUBLE_EQ(weights(with) - weights(without), 2.0 * 27 * 8 * 512 * (128 + 128));
}

// Weights of routed experts alone in 4 bits: the others take what they take in 16.
TEST(ProgramPrice, weights_that_are_not_quantised_take_16_bits) {
  const auto weights = [](std::optional<hardware::StorageFormat> format, workload::Quantized quantized) {
    parallel::Job job;
    job.formats.weights = format;
    job.formats.quantized = quantized;
    return built("qwen3-30b-a3b", profile("vllm-v1"), degrees_of(4, 1, 1), job)->pool->memory().weights.value();
  };
  using workload::Quantized;
  const auto int4 = hardware::StorageFormat::int4;
  const double wide = weights({}, Quantized::all), narrow = weights(int4, Quantized::all);
  const double experts = 48.0 * 128 * 3 * 2048 * 768 / 4, saved = 2.0 - hardware::element_size(int4).value();
  EXPECT_NEAR(wide - weights(int4, Quantized::experts), saved * experts, 1e-4 * wide);  // norms are counted narrow
  const double attention = 48.0 * (2.0 * 32 + 2.0 * 4) * 128 * 2048 / 4;
  EXPECT_NEAR(weights(int4, Quantized::but_attention) - narrow, saved * attention, 1e-6 * wide);
  EXPECT_NEAR(weights(int4, Quantized::but_qkv) - narrow, saved * attention * 40 / 72, 1e-6 * wide);
}

// Sequences that decode in an iteration with prompts: with drafts that are all accepted, the iteration generates four
// tokens of each, and what they add to its time is spread over them. Rows and cache are read once.
TEST(ProgramPrice, drafts_are_verified_in_iterations_with_prompts) {
  EngineSettings plain = profile("vllm-v1"), drafts = plain;
  drafts.speculative_tokens = 3;
  drafts.acceptance = 1.0;
  drafts.draft_layers = 0.0;
  const std::vector<Chunk> chunks = {{256, 0}};
  const auto added = [&](const EngineSettings& settings) {
    const auto engine = built("llama-3.1-8b", settings, degrees_of(1, 1, 1));
    ProgramPrice& price = engine->pool->price();
    return price.mixed({chunks, 32, 32 * 8000, 33}) - price.mixed({chunks, 0, 0, 1});
  };
  const Ticks alone = added(plain), spread = added(drafts);
  EXPECT_LT(spread, alone / 2);
  EXPECT_GT(spread, alone / 4);
}

// Engines that send rows of padding to experts are never faster, and no step of more sequences is cheaper by more than
// the tiles of its GEMMs explain.
TEST(ProgramPrice, padding_never_saves_time_by_being_computed) {
  EngineSettings masked = profile("sglang"), routed = masked;
  routed.routes_padding = true;
  const auto one = built("qwen3-30b-a3b", masked, degrees_of(1, 1, 1));
  const auto two = built("qwen3-30b-a3b", routed, degrees_of(1, 1, 1));
  bool differs = false;
  for (std::int64_t sequences = 1; sequences <= 128; ++sequences) {
    const Ticks without = one->pool->price().decode(sequences, 1000 * sequences).at;
    const Ticks with = two->pool->price().decode(sequences, 1000 * sequences).at;
    EXPECT_LE(without, with) << sequences;
    differs |= without < with;
  }
  EXPECT_TRUE(differs);
}

// 32 layers, 4 of the draft model for each of three drafts: 44 layers for a token if none is accepted.
TEST(ProgramPrice, layers_of_the_draft_model_are_launched_too) {
  EngineSettings settings = profile("vllm-v1");
  settings.largest_graph = 0;
  settings.layer_host = Seconds(1e-3);
  settings.sequence_host = settings.draft_host = Seconds(0);
  settings.speculative_tokens = 3;
  settings.draft_layers = 4;
  settings.acceptance = 0;
  const auto engine = built("llama-3.1-8b", settings, degrees_of(1, 1, 1));
  const double step = seconds_of(engine->pool->price().decode(1, 100).at);
  EXPECT_GT(step, 44e-3);
  EXPECT_LT(step, 46e-3);  // and the head three times
}

// Prompts of two tokens beside decodes: the host launches the layers once, attention over the cache included.
TEST(ProgramPrice, launches_hide_attention_with_and_without_prompts) {
  EngineSettings settings = profile("vllm-v1");
  settings.largest_graph = 0;
  settings.layer_host = Seconds(2e-3);
  settings.prompt_host = Seconds(5e-6);
  settings.sequence_host = Seconds(0);
  const auto engine = built("llama-3.1-8b", settings, degrees_of(1, 1, 1));
  ProgramPrice& price = engine->pool->price();
  const Chunk chunk{2, 0};
  const MixedStep step{{&chunk, 1}, 32, 32 * 4000, 33};
  EXPECT_EQ(price.mixed(step), ticks_of(32 * Seconds(2e-3)));
  EXPECT_EQ(price.decode(32, 32 * 4000).at, ticks_of(32 * Seconds(2e-3)));
}

TEST(captured_size, is_never_above_the_largest_graph) {
  EXPECT_EQ(captured_size(5, 5), 5);
  EXPECT_EQ(captured_size(98, 100), 100);
  EXPECT_EQ(captured_size(101, 100), 101);
  EXPECT_EQ(captured_size(9, 512), 16);
  for (std::int64_t sequences = 1; sequences <= 100; ++sequences) {
    EXPECT_LE(captured_below(sequences), sequences);
    EXPECT_EQ(captured_size(captured_below(sequences), 100), captured_below(sequences));
  }
}

}  // namespace
}  // namespace orrery::serving::program_price_test
