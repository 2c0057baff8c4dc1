// From github:SemiAnalysisAI/InferenceX: its launch files for one node and fixed lengths (dsr1_*, kimik2.5_*,
// gptoss_*), those that it had until November 2025 (70b_*), and the flags of its pools on AMD GPUs; files of August
// 2026 for rows since October 2025, and of a row's day where they differ and it matters.
// And from github:ai-dynamo/aiconfigurator, for the runs of its own evaluation.
#include "orrery/validate/serving_launch.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/validate/serving_software.hpp"
#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

// Of a layer with experts where TensorRT-LLM captures prompts piecewise: half of its profile's.
constexpr Seconds kPiecewiseHost{1e-3};
constexpr double kShort = 1024, kLong = 8192;

bool is_amd(const ServingRow& row) { return row.gpu_type.starts_with("MI"); }
bool is_blackwell(const ServingRow& row) {
  return row.gpu_type.find("B200") != std::string::npos || row.gpu_type.find("B300") != std::string::npos;
}
double clients_of(const ServingRow& row) { return row.load.value_or(0.0); }
bool has_lengths(const ServingRow& row, double isl, double osl) { return row.isl == isl && row.osl == osl; }

// Tokens of an iteration are the interval between two tokens of a stream over the time per token, where engines only
// decode and send every iteration's, or every 10th or 100th: with one draft 1.71 to 1.96, with two 1.91 to 2.27, with
// three 2.16 to 2.35 at outputs of up to 1,024 tokens; of 8,192 tokens, which repeat themselves, 1.95, 2.53 and 2.8 to
// 2.95. Acceptance gives the middle of these, as a geometric series.
double acceptance_of(const ServingRow& row, std::int64_t drafts) {
  constexpr double kShortOutputs[] = {0.88, 0.67, 0.63}, kLongOutputs[] = {0.95, 0.83, 0.78};
  const std::size_t at = static_cast<std::size_t>(std::clamp<std::int64_t>(drafts, 1, 3)) - 1;
  return row.osl > 4096.0 ? kLongOutputs[at] : kShortOutputs[at];
}

// SGLang's second way of speculative decoding overlaps the host with the device; by default since version 0.5.13,
// before where SGLANG_ENABLE_SPEC_V2 is exported: on AMD GPUs (pools: since May 2026), for fp4 on B200, and in the
// recipes of H100 but one.
bool overlaps_drafts(const ServingRow& row) {
  if (is_amd(row)) { return row.mode != "disagg" || row.measured >= "2026-05-07"; }
  if (row.gpu_type == "H100-SXM") { return row.decode_dp_attn.value_or(0) == 0 || !has_lengths(row, kShort, kShort); }
  return row.gpu_type == "B200" && row.precision == "fp4";
}
// Without: as fitted before the two ways were told apart.
constexpr Seconds kSerialDraftHost{0.15e-3};

void set_drafts(const ServingRow& row, bool attention_dp, serving::EngineSettings& settings) {
  const bool is_sglang = settings.name == "sglang";
  settings.speculative_tokens = is_sglang && !is_amd(row) ? 2 : 3;
  if (!is_sglang && attention_dp) { settings.speculative_tokens = 1; }
  if (is_sglang && !overlaps_drafts(row)) { settings.draft_host = kSerialDraftHost; }
}

// ---- DeepSeek-R1 ----

// TensorRT-LLM's launch files for fp8 until the middle of January 2026: DeepGEMM's grouped GEMMs, no piecewise graphs,
// no wait for a full batch, and iterations of one prompt's tokens.
bool is_early_fp8(const ServingRow& row) {
  return row.precision == "fp8" && is_blackwell(row) && !row.measured.empty() && row.measured < "2026-01-20";
}

// DeepGEMM's kernels with the sort and the casts before them, from the tables that `expert_math_rate_of` is from.
void use_deep_gemm(serving::EngineSettings& settings) {
  settings.expert_math_rate_of["fp8"] = kDeepGemmRate;
  settings.expert_latency = Seconds(20e-6);
}

bool has_piecewise_graphs(const ServingRow& row) {
  const double clients = clients_of(row);
  const bool drafts = row.spec_method == "mtp", dp = row.dp_attn.value_or(0) > 0;
  const bool is_short = has_lengths(row, kShort, kShort), is_prompt = has_lengths(row, kLong, kShort);
  if (!is_blackwell(row) || is_early_fp8(row)) { return false; }
  if (row.precision == "fp4") {
    if (!drafts) { return is_short && row.tp == 8 && row.ep == 8; }
    return is_short && (clients == 32 || clients == 64 || (clients == 128 && !dp));
  }
  if (!drafts) { return clients >= 64 && (is_short || is_prompt); }
  return !dp && row.measured >= "2026-02-05" && !(is_short && clients <= 4) && !(is_prompt && clients <= 16);
}

void set_trtllm_r1(const ServingRow& row, const serving::Degrees& degrees, serving::EngineSettings& settings) {
  const bool drafts = row.spec_method == "mtp", dp = degrees.attention_dp > 1;
  const auto clients = std::llround(clients_of(row)), isl = std::llround(*row.isl);
  settings.memory_use = is_blackwell(row) ? 0.8 : 0.75;
  const auto round_up = [](std::int64_t tokens) { return (tokens + 63) / 64 * 64; };
  const bool is_early = is_early_fp8(row);
  if (is_early) { use_deep_gemm(settings); }
  if (drafts) {
    const std::int64_t parts = !dp ? 1 : row.precision == "fp8" ? 8 : 4;
    const std::int64_t sequences = std::max<std::int64_t>(clients / parts, 1);
    settings.max_sequences = sequences;
    settings.max_batched_tokens =
        round_up((settings.speculative_tokens + 1) * sequences + (is_early ? std::llround(1.8 * *row.isl) : isl) + 64);
  } else {
    settings.max_batched_tokens = std::max<std::int64_t>(is_early ? 0 : 8192, round_up(clients + isl + 64));
    if (row.precision == "fp8" && !is_early && has_lengths(row, kShort, kShort) && clients >= 64 && is_blackwell(row)) {
      settings.batch_wait = 40;
      settings.batch_wait_part = 0.8;
    }
  }
  if (dp) { settings.balance_wait = 60; }
  if (has_piecewise_graphs(row)) { settings.expert_layer_host = kPiecewiseHost; }
}

// Hosts of InferenceX's machines under SGLang: first tokens of single prompts of 1,024 tokens take 157 and 165 ms on
// B200 and 71 and 77 ms on B300, measured on the same day; on MI300X, four and eight clients, 160 and 167 ms.
void set_host(const ServingRow& row, serving::EngineSettings& settings) {
  constexpr Seconds kSlow{2.4e-3}, kFast{1e-3};  // of a layer with experts
  if (row.gpu_type == "B200" || row.gpu_type == "MI300X") { settings.expert_layer_host = kSlow; }
  if (row.gpu_type == "B300") { settings.expert_layer_host = kFast; }
}

// With drafts SGLang runs 48 requests where its launch file has no limit, as that of fp4 on MI355X.
void set_sglang_amd(const ServingRow& row, serving::EngineSettings& settings) {
  constexpr double kManyClients = 32.0;
  const bool is_fp4 = row.precision == "fp4";
  settings.memory_use = 0.8;
  settings.max_batched_tokens = row.gpu_type != "MI355X" ? 131'072 : 196'608;
  if (is_fp4 && has_lengths(row, kLong, kShort) && clients_of(row) > kManyClients) {
    settings.max_batched_tokens = 32'768;
  }
  if (row.spec_method == "mtp" && is_fp4) { settings.max_sequences = 48; }
}

void set_sglang_r1(const ServingRow& row, const serving::Degrees& degrees, serving::EngineSettings& settings) {
  set_host(row, settings);
  const bool drafts = row.spec_method == "mtp", is_fp8 = row.precision == "fp8";
  if (is_amd(row)) {
    set_sglang_amd(row, settings);
    return;
  }
  constexpr double kFewClients = 16.0;
  const bool is_small = is_fp8 && row.tp == 4;
  settings.poll_interval = is_small || clients_of(row) < kFewClients ? 10 : 30;
  settings.max_batched_tokens = is_small ? 8192 : is_fp8 && !drafts ? 32'768 : 16'384;
  settings.max_sequences = drafts ? 512 : !is_fp8 ? 256 : is_small ? 32 : 128;
  settings.memory_use = is_small ? 0.95 : is_fp8 ? 0.82 : 0.85;
  if (degrees.attention_dp > 1) {
    settings.poll_interval = 1;
    settings.max_batched_tokens = 32'768 / degrees.attention_dp;
    settings.max_sequences /= degrees.attention_dp;
  }
  if (row.gpu_type == "H200-SXM") {
    settings.poll_interval = 1;
    settings.max_batched_tokens = 32'768;
  }
}

// Pools of SGLang on AMD GPUs: their list of configurations and settings of models, as they were on the day of a row.
std::int64_t drafts_of_amd_pool(const ServingRow& row, const serving::Degrees& degrees) {
  constexpr double kFewClients = 32.0;
  if (row.measured < "2026-02-11") { return 2; }
  const bool is_prompt = has_lengths(row, kLong, kShort), is_last = row.measured >= "2026-05-31";
  if (degrees.ep > 1) { return row.precision == "fp4" && is_last && is_prompt && clients_of(row) <= 640.0 ? 3 : 1; }
  if (row.precision == "fp8" || row.measured < "2026-03-01") { return 2; }
  if (clients_of(row) <= kFewClients || (is_last && is_prompt)) { return 3; }
  return row.measured < "2026-05-07" ? 1 : 2;
}

void set_sglang_pool(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                     serving::EngineSettings& settings) {
  const bool is_prefill = pool == "prefill", is_fp8 = row.precision == "fp8";
  const bool is_late = !is_fp8 && row.measured >= "2026-05-07";  // DeepSeek-R1-0528-MXFP4-v2
  settings.memory_use = is_prefill ? 0.8 : 0.85;
  if (settings.speculative_tokens > 0) { settings.speculative_tokens = drafts_of_amd_pool(row, degrees); }
  if (degrees.attention_dp > 1) {
    settings.stack = "sglang-deepep";  // --moe-a2a-backend mori
    const std::int64_t of_prompts = std::max<std::int64_t>(1, (is_late ? 4096 : 24) / degrees.attention_dp);
    settings.max_sequences = is_prefill ? of_prompts : is_late ? 512 : 160;
    settings.max_batched_tokens = is_fp8 ? 16'384 : is_late ? 8192 : 16'384 / degrees.attention_dp;
    return;
  }
  settings.max_batched_tokens = is_fp8 || !is_prefill ? 262'144 : 16'384;
  settings.max_sequences = !is_prefill && degrees.ep > 1 ? 256 : 128;
}

// Tokens of a sequence that a server sends together. TensorRT-LLM's launch files count iterations, SGLang's tokens;
// AMD's pools state it with attention dp.
std::int64_t stream_interval_of(const ServingRow& row, const serving::Degrees& degrees,
                                const serving::EngineSettings& settings) {
  if (settings.name == "tensorrt-llm") {
    return serving::token_steps(settings, row.model_key == "gpt-oss-120b" ? 20 : 10);
  }
  if (settings.name != "sglang") { return 1; }
  if (is_amd(row)) { return degrees.attention_dp > 1 && row.measured >= "2026-05-07" ? 100 : 1; }
  return row.precision == "fp8" && is_blackwell(row) ? 30 : 10;
}

// ---- other models ----

void set_dense_70b(const ServingRow& row, serving::EngineSettings& settings) {
  if (settings.name == "tensorrt-llm") {
    settings.max_batched_tokens = 16'384;
    if (has_lengths(row, kShort, kShort) && row.tp.value_or(1) < 8) {
      settings.batch_wait = 20;
      settings.batch_wait_part = 0.9;
    }
  } else if (is_amd(row)) {
    settings.max_batched_tokens = 131'072;
    settings.memory_use = 0.94;
  }
}

void set_gpt_oss(const ServingRow& row, serving::EngineSettings& settings, std::optional<bool>& narrow_cache) {
  narrow_cache = is_blackwell(row);
  if (settings.name == "tensorrt-llm") {
    settings.max_batched_tokens = 20'000;
    settings.memory_use = 0.85;
  } else if (is_amd(row)) {
    settings.memory_use = 0.95;
  }
}

// ---- AIConfigurator's evaluation ----

// Its generator (src/aiconfigurator/generator/rule_plugin@2cecd6596): an iteration has room for one prompt, 1,500
// tokens and the largest batch, taken as the clients. SGLang's command lines have a limit without the latter, and
// prompts beside decodes, from its version 0.5.6 on (sglang.rule@07a377923, cli_args.0.5.6.post2.j2@095f58a51).
void set_aiconfigurator(const ServingRow& row, serving::EngineSettings& settings) {
  constexpr std::int64_t kRoom = 1500;
  const std::int64_t tokens = std::llround(*row.isl) + kRoom;
  if (settings.name == "sglang") {
    if (is_older(row.engine_version, {0, 5, 6})) { return; }
    settings.max_batched_tokens = std::min(settings.max_batched_tokens, tokens);
    settings.scheduler = serving::Scheduler::mixed;
    return;
  }
  settings.max_batched_tokens = tokens + std::llround(clients_of(row) / static_cast<double>(row.replicas.value_or(1)));
  if (settings.name == "tensorrt-llm") {
    settings.chunked_prefill = false;
    settings.memory_of_free = true;
    settings.memory_use = 0.8;
    settings.prefix_cache = false;
  }
}

// ---- vLLM of 2023 ----

// Splitwise's runs: all prompts in one iteration, as E2E is the first token's time and that of the others; no captured
// graphs, which vLLM has since version 0.2.6.
void set_vllm_2023(const ServingRow& row, serving::EngineSettings& settings) {
  settings.largest_graph = 0;
  settings.max_batched_tokens =
      std::max<std::int64_t>(settings.max_batched_tokens, std::llround(*row.isl * clients_of(row)));
}

// ---- dstack's comparison of MI300X and H100 ----

// vLLM 0.6 on MI300X: the scheduler runs once in 15 steps (num_scheduler_steps).
void set_dstack(const ServingRow& row, serving::EngineSettings& settings) {
  if (row.family != "dstack_405b_qps" || !is_amd(row)) { return; }
  constexpr std::int64_t kSteps = 15;
  settings.poll_interval = kSteps;
  settings.step_host *= 1.0 / static_cast<double>(kSteps);
}

// ---- MLPerf ----

// Its load generator runs in the process of the engine, and gives and gets tokens. Offline nothing is streamed, and
// TensorRT-LLM's engine in C++ has no loop over sequences in Python; a server's answers go through one.
void set_mlperf(const ServingRow& row, serving::EngineSettings& settings) {
  settings.prompt_host = settings.token_host = {};
  if (settings.name == "tensorrt-llm" && row.load_kind == "offline") { settings.sequence_host = {}; }
}

// ---- LMSYS's wide expert parallelism ----

// Their report (lmsys.org/blog/2025-05-05-large-scale-ep): 16,384 tokens of a rank, two-batch overlap, EPLB. Experts
// that are chosen evenly compute prompts 18 % faster (59,337 instead of 50,302 tokens/s a node), which 1.3 makes 16 %.
void set_wide_experts(serving::EngineSettings& settings) {
  settings.expert_imbalance = 1.3;
  settings.max_batched_tokens = 16'384;
  settings.memory_use = 0.85;
  settings.redundant_experts = 32;
  settings.two_batch_prompts = settings.two_batch_decodes = 2;
}

// ---- Versions of vLLM ----

// Since 0.14 it schedules the next iteration while one runs (release notes; pull request 31998); before, the device
// waited for the scheduler, the sampler and their messages. Blocks of few rows for experts with scales by block are its
// default since 0.17 (34846).
void set_version(const ServingRow& row, serving::EngineSettings& settings) {
  constexpr Seconds kSerialHost{2e-3};  // fitted: Qwen3-32B on H100, Llama 3.1 8B on H200
  constexpr std::int64_t kUntuned = 64;
  if (settings.name != "vllm-v1") { return; }
  if (is_older(row.engine_version, {0, 14})) { settings.step_host = kSerialHost; }
  if (is_older(row.engine_version, {0, 17})) { settings.expert_block_rows = kUntuned; }
}

}  // namespace

bool is_of_aiconfigurator(const ServingRow& row) {
  return row.family == "aic_silicon" && row.length_dist == "fixed (not stated)";
}

// AIConfigurator's runs of vLLM on H200 have up to 118,000 prompt tokens per second and GPU with Llama 3.1 8B, 96 % of
// the peak rate, so prompts must repeat. AIPerf's default is a data set of 100 prompts (--num-dataset-entries).
// dstack's comparison of pools measures 128, 64 and 32 clients one after the other, each with the same 500 prompts
// (the default seed of `vllm bench serve`) and one that is sent alone before: the scripts of
// github:dstackai/benchmarks@06c957a, comparison/pd_ratio.
RepeatedPrompts repeated_prompts(const ServingRow& row) {
  if (is_of_aiconfigurator(row) && row.engine == "vllm" && row.gpu_type == "H200-SXM") {
    constexpr std::int64_t kDataset = 100, kWarmUp = 2;  // prompts; requests of a client before those measured
    return {kDataset, kWarmUp * std::llround(row.load.value_or(0.0))};
  }
  if (row.family == kPoolRatios && row.load_kind == "concurrency") {
    constexpr std::int64_t kPrompts = 501;
    constexpr std::array kOrder = {128.0, 64.0, 32.0};
    const auto at = std::find(kOrder.begin(), kOrder.end(), row.load.value_or(0.0));
    if (at != kOrder.end() && at != kOrder.begin()) { return {kPrompts, kPrompts * (at - kOrder.begin())}; }
  }
  return {};
}

bool is_of_inferencex(const ServingRow& row) {
  return row.family.starts_with("inferencex") ||
         (row.family == "aic_silicon" && row.length_dist.starts_with("uniform[0.8"));
}

void set_launch(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                serving::EngineSettings& settings, std::optional<bool>& narrow_cache) {
  settings.software_age = software_age_of(row);
  set_version(row, settings);
  // TensorRT-LLM multiplies absorbed weights in fp8 on Hopper, and in bf16 on Blackwell (fp8_block_scaling_bmm_out).
  if (settings.name == "tensorrt-llm" && !is_blackwell(row)) { settings.wide_absorption = false; }
  if (is_of_aiconfigurator(row)) { set_aiconfigurator(row, settings); }
  if (row.family == "splitwise_perf") { set_vllm_2023(row, settings); }
  set_dstack(row, settings);
  if (row.family == kWideExperts) { set_wide_experts(settings); }
  if (row.family.starts_with("mlperf_inference")) { set_mlperf(row, settings); }
  if (!is_of_inferencex(row)) { return; }
  const bool is_sglang = settings.name == "sglang";
  if (row.spec_method == "mtp") { set_drafts(row, degrees.attention_dp > 1, settings); }
  if (row.model_key == "deepseek-r1") {
    if (is_sglang) { narrow_cache = row.gpu_type != "H100-SXM"; }
    if (row.mode == "disagg") {
      is_amd(row) ? set_sglang_pool(row, pool, degrees, settings) : set_dynamo_pool(row, pool, degrees, settings);
    } else if (is_sglang) {
      set_sglang_r1(row, degrees, settings);
    } else {
      set_trtllm_r1(row, degrees, settings);
    }
  } else if (row.mode == "disagg") {
    if (row.model_key == "kimi-k2") {
      narrow_cache = true;
      set_dynamo_pool(row, pool, degrees, settings);
    }
  } else if (row.model_key == "llama-3.1-70b") {
    narrow_cache = is_blackwell(row);
    set_dense_70b(row, settings);
  } else if (row.model_key == "gpt-oss-120b") {
    set_gpt_oss(row, settings, narrow_cache);
  } else if (row.model_key == "kimi-k2") {
    narrow_cache = row.precision == "fp4";
  }
  if (settings.speculative_tokens > 0) { settings.acceptance = acceptance_of(row, settings.speculative_tokens); }
  settings.stream_interval = stream_interval_of(row, degrees, settings);
}

// Dynamo's default is in turn, as dstack's router is told to; the flags of AMD's pools are random.
serving::Routing routing_of(const ServingRow& row) {
  if (row.family == kPoolRatios) { return serving::Routing::round_robin; }
  if (!is_of_inferencex(row)) { return serving::Routing::least_outstanding; }
  return is_amd(row) ? serving::Routing::random : serving::Routing::round_robin;
}

}  // namespace orrery::validate
