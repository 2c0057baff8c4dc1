#include "orrery/validate/serving_rows.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/estimate/spread.hpp"
#include "orrery/validate/pool_recipes.hpp"
#include "orrery/validate/serving_launch.hpp"
#include "orrery/validate/serving_software.hpp"

namespace orrery::validate::serving_rows_test {
namespace {

ServingRow old_vllm(std::int64_t tokens) {
  ServingRow row;
  row.family = "of_a_test";
  row.model_key = "llama-3.1-8b";
  row.precision = "bf16";
  row.gpu_type = "H100-SXM";
  row.engine = "vLLM";
  row.engine_version = "0.6.3";
  row.gpus = row.tp = 1;
  row.isl = 400.0;
  row.osl = 100.0;
  row.load_kind = "poisson_rate";
  row.load = 1000.0;  // all requests wait from the start
  row.num_requests = 600;
  row.max_batch = 512;
  row.max_batched_tokens = tokens;
  return row;
}

// With 512 tokens an iteration, prompts are cut and decodes go first: as many sequences run as prompts refill, R / 100
// = (512 - R) / 400, R = 102, and an iteration has all 512 tokens. Without chunks all 512 sequences run.
TEST(served, old_vllm_cuts_prompts_where_an_iteration_has_512_tokens) {
  const auto cut = served(old_vllm(512), ORRERY_SOURCE_DATA_DIR);
  const auto whole = served(old_vllm(8192), ORRERY_SOURCE_DATA_DIR);
  ASSERT_TRUE(cut) << cut.error();
  ASSERT_TRUE(whole) << whole.error();
  const auto running = [](const results::Serving& s) { return s.output_tokens_per_s * s.tpot.mean; };
  EXPECT_NEAR(running(*cut), 102.0, 25.0);  // the start and the end of the run have fewer
  EXPECT_GT(running(*whole), 200.0);
}

TEST(served, checkpoints_quantise_what_their_cards_say) {
  ServingRow row;
  const auto of = [&](const char* model, const char* precision, const char* gpu) {
    row.model_key = model;
    row.precision = precision;
    row.gpu_type = gpu;
    return quantized_of(row);
  };
  using workload::Quantized;
  EXPECT_EQ(of("deepseek-r1", "fp4", "B200"), Quantized::but_qkv);
  EXPECT_EQ(of("deepseek-r1", "fp4", "MI355X"), Quantized::but_attention);
  EXPECT_EQ(of("deepseek-r1", "fp8", "MI300X"), Quantized::all);
  EXPECT_EQ(of("gpt-oss-120b", "mxfp4", "H200-SXM"), Quantized::experts);
  EXPECT_EQ(of("kimi-k2", "int4", "B200"), Quantized::experts);
  EXPECT_EQ(of("llama-3.1-70b", "fp4", "B200"), Quantized::all);
}

TEST(served, software_is_as_old_as_its_row) {
  ServingRow row;
  const auto age = [&](const char* day) {
    row.measured = day;
    return software_age_of(row);
  };
  EXPECT_DOUBLE_EQ(age("2026-06-01"), 0.0);
  EXPECT_DOUBLE_EQ(age("2026-08-20"), 0.0);
  EXPECT_DOUBLE_EQ(age("20260401"), 2.0);
  EXPECT_NEAR(age("2025-11-16"), 6.5, 0.02);
  EXPECT_DOUBLE_EQ(age("2025-08"), 10.0);
  EXPECT_DOUBLE_EQ(age("2023"), 12.0);
  EXPECT_DOUBLE_EQ(age(""), 0.0);
  EXPECT_DOUBLE_EQ(age("unknown"), 0.0);
}

// A run of AIConfigurator's evaluation: lengths are exact, ten prompts a client, all clients begin at once.
ServingRow evaluated(const char* engine, const char* version, const char* gpu) {
  ServingRow row;
  row.family = "aic_silicon";
  row.length_dist = "fixed (not stated)";
  row.mode = "agg";
  row.model_key = "llama-3.1-8b";
  row.precision = "fp8";
  row.gpu_type = gpu;
  row.engine = engine;
  row.engine_version = version;
  row.gpus = row.tp = 1;
  row.isl = 4000.0;
  row.osl = 100.0;
  row.load_kind = "concurrency";
  row.load = 32.0;
  return row;
}

serving::EngineSettings settings_of(const ServingRow& row, const char* profile) {
  auto settings = serving::load_engine(ORRERY_SOURCE_DATA_DIR, profile);
  EXPECT_TRUE(settings) << settings.error().text();
  std::optional<bool> narrow_cache;
  set_launch(row, "engine", {}, *settings, narrow_cache);
  EXPECT_FALSE(narrow_cache);
  return *settings;
}

TEST(served, engines_of_an_evaluation_have_room_for_a_prompt_and_1500_tokens) {
  const auto vllm = settings_of(evaluated("vllm", "0.12.0", "H100-SXM"), "vllm-v1");
  EXPECT_EQ(vllm.max_batched_tokens, 4000 + 1500 + 32);
  EXPECT_TRUE(vllm.chunked_prefill);
  const auto trtllm = settings_of(evaluated("trtllm", "1.0.0rc3", "H100-SXM"), "tensorrt-llm");
  EXPECT_EQ(trtllm.max_batched_tokens, 4000 + 1500 + 32);
  EXPECT_FALSE(trtllm.chunked_prefill || trtllm.prefix_cache);
  const auto sglang = settings_of(evaluated("sglang", "0.5.10", "H100-SXM"), "sglang");
  EXPECT_EQ(sglang.max_batched_tokens, 4000 + 1500);
  EXPECT_EQ(sglang.scheduler, serving::Scheduler::mixed);
  EXPECT_EQ(settings_of(evaluated("sglang", "0.5.1.post1", "H100-SXM"), "sglang").scheduler,
            serving::Scheduler::prefill_first);
  ServingRow other = evaluated("vllm", "0.12.0", "H100-SXM");
  other.length_dist = "fixed";
  EXPECT_EQ(settings_of(other, "vllm-v1").max_batched_tokens, 8192);
}

// Pools of DeepSeek-R1 on MI355X had other numbers of drafts from month to month.
TEST(served, pools_have_the_drafts_of_their_day) {
  const auto drafts_of = [](const char* day, const char* precision, double clients, std::int64_t ep) {
    ServingRow row;
    row.family = "inferencex_dsr1";
    row.mode = "disagg";
    row.model_key = "deepseek-r1";
    row.spec_method = "mtp";
    row.gpu_type = "MI355X";
    row.engine = "mori-sglang";
    row.measured = day;
    row.precision = precision;
    row.isl = row.osl = 1024.0;
    row.load = clients;
    serving::EngineSettings settings;
    settings.name = "sglang";
    std::optional<bool> narrow_cache;
    serving::Degrees degrees;
    degrees.tp = 8;
    degrees.ep = ep;
    set_launch(row, "decode", degrees, settings, narrow_cache);
    return settings.speculative_tokens;
  };
  EXPECT_EQ(drafts_of("2026-02-06", "fp8", 32, 8), 2);
  EXPECT_EQ(drafts_of("2026-02-12", "fp8", 256, 8), 1);
  EXPECT_EQ(drafts_of("2026-03-03", "fp8", 32, 1), 2);
  EXPECT_EQ(drafts_of("2026-03-13", "fp4", 32, 1), 3);
  EXPECT_EQ(drafts_of("2026-03-13", "fp4", 256, 1), 1);
  EXPECT_EQ(drafts_of("2026-05-27", "fp4", 64, 1), 2);
}

// Tokens that a server sends together, by launch file: TensorRT-LLM counts iterations, of several tokens with drafts.
TEST(served, servers_send_as_many_tokens_together_as_their_launch_files_say) {
  const auto interval_of = [](const char* engine, const char* gpu, const char* precision, const char* day,
                              std::int64_t attention_dp, std::int64_t drafts = 0) {
    ServingRow row;
    row.family = "inferencex_dsr1";
    row.mode = "disagg";
    row.model_key = "deepseek-r1";
    row.gpu_type = gpu;
    row.measured = day;
    row.precision = precision;
    row.isl = row.osl = 1024.0;
    serving::EngineSettings settings;
    settings.name = engine;
    settings.speculative_tokens = drafts;
    settings.acceptance = 1.0;
    if (drafts > 0) { row.osl = 8192.0; }
    std::optional<bool> narrow_cache;
    serving::Degrees degrees;
    degrees.attention_dp = attention_dp;
    set_launch(row, "decode", degrees, settings, narrow_cache);
    return settings.stream_interval;
  };
  EXPECT_EQ(interval_of("sglang", "MI355X", "fp4", "2026-05-27", 8), 100);
  EXPECT_EQ(interval_of("sglang", "MI355X", "fp4", "2026-05-27", 1), 1);
  EXPECT_EQ(interval_of("sglang", "MI355X", "fp4", "2026-03-13", 8), 1);
  EXPECT_EQ(interval_of("sglang", "B200", "fp8", "2026-05-27", 1), 30);
  EXPECT_EQ(interval_of("sglang", "B200", "fp4", "2026-05-27", 1), 10);
  EXPECT_EQ(interval_of("sglang", "H200-SXM", "fp8", "2026-05-27", 1), 10);
  EXPECT_EQ(interval_of("tensorrt-llm", "B200", "fp8", "2026-05-27", 1), 10);
  EXPECT_EQ(interval_of("tensorrt-llm", "B200", "fp8", "2026-05-27", 1, 1), 20);  // 1.95 tokens of an iteration
}

ServingRow pooled(const char* family, const char* engine, const char* model, const char* gpu, const char* day) {
  ServingRow row;
  row.family = family;
  row.mode = "disagg";
  row.engine = engine;
  row.model_key = model;
  row.gpu_type = gpu;
  row.precision = "fp4";
  row.measured = day;
  row.isl = row.osl = 1024.0;
  row.load_kind = "concurrency";
  row.load = 4.0;
  row.num_requests = 8;
  row.prefill_workers = row.decode_workers = 1;
  return row;
}

std::vector<std::string> plans_in(const ServingRow& row) {
  const auto run = served(row, ORRERY_SOURCE_DATA_DIR);
  EXPECT_TRUE(run) << run.error();
  std::vector<std::string> plans;
  if (run) {
    for (const auto& pool : run->pools) { plans.push_back(pool.plan); }
  }
  return plans;
}

// Names of recipes and launch files tell more than the columns: dep4_dep16 has attention dp in both pools, gen4_tep8
// has none in the decode pool, and experts were always shared out in fp4 on MI355X until March 2026.
TEST(served, pools_have_the_degrees_of_their_recipes) {
  using testing::ElementsAre;
  ServingRow vllm = pooled("aic_silicon", "vllm", "kimi-k2", "GB200", "2026-04-07");
  vllm.length_dist = "uniform[0.8,1.0] of isl and osl, random tokens";
  vllm.prefill_gpus = vllm.prefill_tp = vllm.prefill_ep = 4;
  vllm.decode_gpus = vllm.decode_tp = vllm.decode_ep = 16;
  vllm.prefill_dp_attn = vllm.decode_dp_attn = 1;
  EXPECT_THAT(plans_in(vllm), ElementsAre("tp 1, attention dp 4, ep 4", "tp 1, attention dp 16, ep 16"));
  ServingRow trt = pooled("inferencex_dsr1", "dynamo-trt", "deepseek-r1", "GB200", "2026-01-31");
  trt.prefill_tp = trt.prefill_ep = trt.prefill_gpus = 4;
  trt.decode_tp = trt.decode_ep = 8;
  trt.decode_gpus = 32;
  trt.decode_workers = 4;
  trt.prefill_dp_attn = trt.decode_dp_attn = 1;
  EXPECT_THAT(plans_in(trt), ElementsAre("tp 1, attention dp 4, ep 4", "tp 8, ep 8"));
  ServingRow amd = pooled("inferencex_dsr1", "mori-sglang", "deepseek-r1", "MI355X", "2026-02-13");
  amd.prefill_tp = amd.decode_tp = amd.prefill_gpus = amd.decode_gpus = 8;
  amd.prefill_ep = amd.decode_ep = 1;
  EXPECT_THAT(plans_in(amd), ElementsAre("tp 8, ep 8", "tp 8, ep 8"));
  amd.measured = "2026-03-13";
  EXPECT_THAT(plans_in(amd), ElementsAre("tp 8, ep 1", "tp 8, ep 1"));
}

// Copies of InferenceX's rows: tp 4, ep 4 of vLLM is stated as 16 GPUs with attention dp, and of TensorRT-LLM as tp 16.
TEST(served, copied_rows_have_the_degrees_of_their_lists) {
  using testing::ElementsAre;
  ServingRow row;
  row.family = "aic_silicon";
  row.length_dist = "uniform[0.8,1.0] of isl and osl, random tokens";
  row.mode = "agg";
  row.isl = row.osl = 64.0;
  row.load_kind = "concurrency";
  row.load = 1.0;
  row.pp = row.replicas = 1;
  row.model_key = "kimi-k2";
  row.precision = "fp4";
  row.gpu_type = "B200";
  row.engine = "vllm";
  row.engine_version = "0.17.0";
  row.tp = row.dp_attn = 4;
  row.ep = row.gpus = 16;
  EXPECT_THAT(plans_in(row), ElementsAre("tp 4, ep 4"));
  row.engine = "trtllm";
  EXPECT_THAT(plans_in(row), ElementsAre("tp 1, attention dp 4, ep 4"));
  row.dp_attn = 1;
  row.tp = 16;
  row.ep = 4;
  EXPECT_THAT(plans_in(row), ElementsAre("tp 4, ep 4"));
}

// By names of recipes: batches, drafts and attention dp; a batch of the day; by clients where no list has the run.
TEST(served, decode_engines_of_pools_have_the_batches_of_their_recipes) {
  const auto recipe_of = [](const char* gpu, const char* precision, double osl, std::int64_t engines,
                            std::int64_t ranks, double clients, const char* day, const char* spec = "none") {
    ServingRow row = pooled("inferencex_dsr1", "dynamo-trt", "deepseek-r1", gpu, day);
    row.precision = precision;
    row.osl = osl;
    row.decode_workers = engines;
    row.decode_gpus = engines * ranks;
    row.load = clients;
    row.spec_method = spec;
    return trtllm_recipe(row);
  };
  const auto wide = recipe_of("GB200", "fp4", 8192, 1, 32, 563, "2026-03-23");  // ctx1_gen1_dep32_batch16_eplb0_mtp0
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->batch, 16);
  EXPECT_EQ(wide->drafts, 0);
  EXPECT_TRUE(wide->attention_dp);
  const auto drafted = recipe_of("GB300", "fp8", 8192, 4, 8, 8192, "2026-03-23", "mtp");  // ctx1_gen4_dep8, mtp1
  ASSERT_TRUE(drafted);
  EXPECT_EQ(drafted->batch, 256);
  EXPECT_EQ(drafted->drafts, 1);
  EXPECT_TRUE(drafted->attention_dp);
  EXPECT_EQ(recipe_of("H200-SXM", "fp8", 1024, 7, 8, 512, "2026-02-10")->batch, 512);
  EXPECT_EQ(recipe_of("GB200", "fp4", 1024, 4, 8, 4, "2025-12-10", "mtp")->batch, 32);
  EXPECT_EQ(recipe_of("GB200", "fp4", 1024, 4, 8, 4, "2026-03-23", "mtp")->batch, 8);
  const auto between = recipe_of("GB200", "fp4", 8192, 1, 32, 700, "2026-03-23");
  ASSERT_TRUE(between);
  EXPECT_EQ(between->batch, 0);
  EXPECT_TRUE(between->attention_dp);
  EXPECT_FALSE(recipe_of("GB200", "fp4", 8192, 9, 8, 700, "2026-03-23"));
  EXPECT_FALSE(recipe_of("MI355X", "fp4", 8192, 1, 32, 563, "2026-03-23"));
}

// MLPerf's load generator exchanges tokens; offline no answer is streamed.
TEST(served, runs_of_mlperf_have_no_text) {
  ServingRow row = evaluated("TensorRT", "TensorRT 10.11", "B200");
  row.family = "mlperf_inference_v5.1";
  row.load_kind = "offline";
  const auto offline = settings_of(row, "tensorrt-llm");
  EXPECT_EQ(offline.prompt_host, Seconds());
  EXPECT_EQ(offline.token_host, Seconds());
  EXPECT_EQ(offline.sequence_host, Seconds());
  row.load_kind = "poisson_rate";
  const auto server = settings_of(row, "tensorrt-llm");
  EXPECT_EQ(server.token_host, Seconds());
  EXPECT_GT(server.sequence_host, Seconds());
}

// Splitwise's batches run in one iteration, without graphs.
TEST(served, vllm_of_2023_launches_every_kernel) {
  ServingRow row = old_vllm(0);
  row.family = "splitwise_perf";
  row.isl = 512.0;
  row.load_kind = "static_batch";
  row.load = 64.0;
  const auto of_2023 = settings_of(row, "vllm-v0");
  EXPECT_EQ(of_2023.largest_graph, 0);
  EXPECT_EQ(of_2023.max_batched_tokens, 64 * 512);
  // The host is that of the profile; the machine says how much slower its processors are.
  row.gpu_type = "A100-80GB";
  EXPECT_EQ(settings_of(row, "vllm-v0").layer_host, of_2023.layer_host);
}

// vLLM schedules while the device runs since 0.14, and has blocks of few rows since 0.17.
TEST(served, versions_of_vllm_have_their_scheduler_and_kernels) {
  const auto settings = [](const char* version) {
    return settings_of(evaluated("vllm", version, "H100-SXM"), "vllm-v1");
  };
  const auto old = settings("0.12.0"), middle = settings("0.15.1"), now = settings("0.17.0"), unknown = settings("");
  EXPECT_GT(old.step_host, middle.step_host);
  EXPECT_EQ(middle.step_host, now.step_host);
  EXPECT_EQ(old.expert_block_rows, 64);
  EXPECT_EQ(middle.expert_block_rows, 64);
  EXPECT_LT(now.expert_block_rows, 64);
  EXPECT_EQ(unknown.step_host, now.step_host);
  EXPECT_EQ(unknown.expert_block_rows, now.expert_block_rows);
}

// One look of the scheduler in 15 steps, and its host time once.
TEST(served, old_vllm_schedules_several_steps_at_once_where_the_source_says_so) {
  ServingRow row = old_vllm(8192);
  row.family = "dstack_405b_qps";
  const auto every = settings_of(row, "vllm-v0");
  EXPECT_EQ(every.poll_interval, 1);
  row.gpu_type = "MI300X";
  const auto several = settings_of(row, "vllm-v0");
  EXPECT_EQ(several.poll_interval, 15);
  EXPECT_DOUBLE_EQ(several.step_host.value(), every.step_host.value() / 15.0);
}

// TensorRT-LLM refuses prompts that are longer than an iteration unless it may cut them, so an engine of such a row
// does: prompts of 4,000 tokens in iterations of 512 have a decode step each.
TEST(served, prompts_longer_than_an_iteration_are_cut) {
  const auto tpot_of = [](std::int64_t tokens) {
    ServingRow row = evaluated("TensorRT", "", "H200-SXM");
    row.family = "mine";
    row.max_batched_tokens = tokens;
    const auto run = served(row, ORRERY_SOURCE_DATA_DIR);
    EXPECT_TRUE(run) << run.error();
    return run ? run->tpot.max : 0.0;
  };
  EXPECT_LT(tpot_of(512), 0.9 * tpot_of(4000));
}

// dstack's comparison of pools: 128, 64 and 32 clients one after the other, each with the same prompts.
TEST(served, runs_before_it_leave_their_prompts) {
  ServingRow row;
  row.family = kPoolRatios;
  row.load_kind = "concurrency";
  const auto before = [&](double clients) {
    row.load = clients;
    return repeated_prompts(row).before;
  };
  EXPECT_EQ(before(128), 0);
  EXPECT_EQ(before(64), 501);
  EXPECT_EQ(before(32), 2 * 501);
  EXPECT_EQ(before(48), 0);
}

// 32 clients send 384 prompts of a set of 100, the first 64 of them before the measurement: of 320, 36 are new.
TEST(served, prompts_that_repeat_are_computed_once) {
  const ServingRow fresh = evaluated("vllm", "0.12.0", "H100-SXM"), repeated = evaluated("vllm", "0.12.0", "H200-SXM");
  EXPECT_EQ(repeated_prompts(fresh).prompts, 0);
  EXPECT_EQ(repeated_prompts(repeated).prompts, 100);
  const auto slow = served(fresh, ORRERY_SOURCE_DATA_DIR), fast = served(repeated, ORRERY_SOURCE_DATA_DIR);
  ASSERT_TRUE(slow) << slow.error();
  ASSERT_TRUE(fast) << fast.error();
  EXPECT_EQ(slow->prefix_hit_rate, 0.0);
  constexpr double kNew = 36.0 / 320.0;
  EXPECT_NEAR(fast->prefix_hit_rate, 1.0 - kNew, 0.01);
}

// What nobody measured is refused before it is simulated.
TEST(served, rows_that_cannot_be_simulated_say_why) {
  ServingRow row = evaluated("vllm", "0.12.0", "H100-SXM");
  row.mode = "mixed";
  EXPECT_EQ(served(row, ORRERY_SOURCE_DATA_DIR).error(),
            "mode \"mixed\" is not known; valid: agg, disagg, prefill_only");
  row.mode = "disagg";
  row.prefill_workers = 100'000'000;
  row.decode_workers = row.prefill_tp = row.decode_tp = 1;
  EXPECT_EQ(served(row, ORRERY_SOURCE_DATA_DIR).error(),
            "100000000 workers of a pool are more than the 100000 that are simulated");
  row = evaluated("vllm", "0.12.0", "H100-SXM");
  row.load = 1e9;
  EXPECT_EQ(served(row, ORRERY_SOURCE_DATA_DIR).error(), "load: more than 1000000 clients are not simulated");
}

// Figures with a range have one in the shipped table. An open loop below saturation has the throughput that arrives.
TEST(served, figures_have_the_ranges_of_their_kind) {
  const auto spreads = estimate::load_spreads(ORRERY_SOURCE_DATA_DIR);
  ASSERT_TRUE(spreads);
  const ServingRow open = old_vllm(512), closed = evaluated("vllm", "0.12.0", "H100-SXM");
  std::size_t of_open = 0, of_closed = 0;
  for (const ServingMetric& metric : serving_metrics()) {
    for (const auto& [row, count] : {std::pair{&open, &of_open}, std::pair{&closed, &of_closed}}) {
      const std::string kind(spread_of(metric, *row));
      if (kind.empty()) { continue; }
      ++*count;
      const auto range = estimate::uncertainty_of(*spreads, {kind}, Seconds(2.0));
      ASSERT_TRUE(range) << kind;
      EXPECT_TRUE(range->p10 < Seconds(2.0) && Seconds(2.0) < range->p90) << kind;
    }
  }
  EXPECT_EQ(of_open, 4U);    // mean and median of TTFT and TPOT
  EXPECT_EQ(of_closed, 7U);  // and three throughputs
}

}  // namespace
}  // namespace orrery::validate::serving_rows_test
