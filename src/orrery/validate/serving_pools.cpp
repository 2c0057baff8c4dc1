// Pools behind Dynamo, from github:SemiAnalysisAI/InferenceX: its lists of configurations (nvidia-master.yaml of
// December 2025 to April 2026), whose names of recipes, or settings, give the largest batch of a decode rank and the
// drafts. Lists state the clients of a run; those of December state them for each decode engine. Batches of prefill
// engines are those of the recipes, github:NVIDIA/srt-slurm recipes/trtllm and recipes/gb200-*.
#include <algorithm>
#include <cmath>
#include <span>

#include "orrery/validate/serving_launch.hpp"

namespace orrery::validate {

namespace {

enum Model : char { kR1, kKimi };

struct PoolLaunch {
  Model model;
  int bits;  // of weights
  int isl, osl;
  int drafts;
  int decode_engines;
  int clients;  // 0: any
  int batch;    // of a rank of attention dp, or an engine without it
};

// 2,150 clients of DeepSeek-R1 at 8,192 tokens: 256 on 8 ranks, 128 on 16.
constexpr int kWide = 2150, kWideSlots = 2048;

constexpr PoolLaunch kPoolLaunches[] = {
    {kR1, 4, 8192, 1024, 3, 3, 54, 16},    {kR1, 4, 1024, 1024, 3, 4, 144, 32},
    {kR1, 4, 1024, 1024, 3, 1, 180, 4},    {kR1, 4, 1024, 1024, 3, 4, 4, 8},
    {kR1, 4, 8192, 1024, 3, 4, 4, 8},      {kR1, 4, 1024, 8192, 3, 7, 7, 1},
    {kR1, 4, 8192, 1024, 1, 1, 4301, 256}, {kR1, 4, 1024, 1024, 1, 5, 16130, 768},
    {kR1, 4, 8192, 1024, 0, 3, 102, 32},   {kR1, 4, 8192, 1024, 0, 3, 3, 32},
    {kR1, 4, 1024, 1024, 0, 4, 256, 128},  {kR1, 4, 1024, 1024, 0, 4, 4, 128},
    {kR1, 4, 1024, 8192, 0, 1, 4096, 128}, {kR1, 4, 1024, 8192, 0, 1, 563, 16},
    {kR1, 4, 1024, 8192, 0, 1, 8192, 256}, {kR1, 4, 1024, 8192, 0, 15, 60, 4},
    {kR1, 4, 1024, 1024, 0, 4, 24, 32},    {kR1, 4, 8192, 1024, 0, 4, 12, 16},
    {kR1, 4, 8192, 1024, 0, 4, 76, 16},    {kR1, 4, 1024, 1024, 0, 1, 4300, 512},
    {kR1, 4, 1024, 1024, 0, 1, 2048, 256}, {kR1, 8, 1024, 8192, 1, 2, 2152, 64},
    {kR1, 8, 1024, 8192, 3, 4, 4, 2},      {kR1, 8, 8192, 1024, 3, 1, 666, 32},
    {kR1, 8, 1024, 1024, 0, 1, 2151, 128}, {kR1, 8, 1024, 8192, 0, 2, 8192, 256},
    {kR1, 8, 1024, 1024, 0, 1, 1127, 32},  {kR1, 8, 1024, 8192, 0, 1, 564, 16},
    {kR1, 8, 1024, 1024, 0, 3, 27, 8},     {kR1, 8, 1024, 1024, 0, 3, 3, 1},
    {kR1, 8, 8192, 1024, 0, 3, 18, 4},     {kR1, 8, 8192, 1024, 0, 3, 6, 1},
    {kR1, 8, 1024, 8192, 0, 4, 36, 8},     {kR1, 8, 1024, 1024, 0, 1, 6144, 768},
    {kR1, 8, 8192, 1024, 0, 1, 333, 8},    {kR1, 8, 8192, 1024, 0, 1, 1229, 64},
    {kR1, 8, 8192, 1024, 3, 3, 30, 8},     {kR1, 8, 1024, 1024, 2, 1, 615, 32},
    {kR1, 8, 1024, 1024, 3, 3, 231, 4},    {kR1, 8, 8192, 1024, 0, 2, 154, 64},
    {kR1, 8, 1024, 1024, 0, 3, 30, 8},     {kR1, 8, 1024, 1024, 0, 3, 6, 1},
    {kR1, 8, 8192, 1024, 0, 3, 9, 2},      {kR1, 8, 1024, 1024, 0, 1, 4916, 256},
    {kR1, 8, 8192, 1024, 0, 1, 308, 16},   {kKimi, 4, 8192, 1024, 0, 5, 0, 16},
    {kKimi, 4, 8192, 1024, 0, 4, 4, 1},    {kKimi, 4, 8192, 1024, 0, 4, 156, 32},
    {kKimi, 4, 1024, 1024, 0, 5, 0, 8},    {kKimi, 4, 1024, 1024, 0, 4, 0, 128},
};

const PoolLaunch* launch_of(const ServingRow& row) {
  const bool drafts = row.spec_method == "mtp";
  const Model model = row.model_key == "kimi-k2" ? kKimi : kR1;
  const auto clients = std::llround(row.load.value_or(0.0));
  for (const PoolLaunch& launch : kPoolLaunches) {
    if (launch.model == model && launch.bits == (row.precision == "fp4" ? 4 : 8) && row.isl == launch.isl &&
        row.osl == launch.osl && (launch.drafts > 0) == drafts && row.decode_workers == launch.decode_engines &&
        (launch.clients == 0 || launch.clients == clients)) {
      return &launch;
    }
  }
  return nullptr;
}

// Prompts and tokens of an iteration of a rank.
void set_trtllm_prefill(const ServingRow& row, serving::EngineSettings& settings) {
  const bool is_short = *row.isl < 4096;
  if (row.gpu_type == "H100-SXM") {
    settings.max_sequences = is_short ? 2 : 1;
    settings.max_batched_tokens = is_short ? 2048 : 8224;
  } else if (row.measured < "2026-01-30") {
    settings.max_sequences = is_short ? 4 : 1;
    settings.max_batched_tokens = is_short ? 4608 : 8448;
  } else {
    settings.max_sequences = is_short ? 16 : 2;
    settings.max_batched_tokens = 16'384;
  }
  settings.memory_use = row.precision == "fp4" ? 0.6 : 0.4;
}

void set_trtllm_pool(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                     serving::EngineSettings& settings) {
  const PoolLaunch* launch = launch_of(row);
  if (launch != nullptr && launch->drafts > 0) { settings.speculative_tokens = launch->drafts; }
  if (row.precision == "fp8" && (pool == "prefill" || degrees.attention_dp > 1)) {
    settings.expert_math_rate_of["fp8"] = kDeepGemmRate;
  }
  if (pool == "prefill") {
    set_trtllm_prefill(row, settings);
    return;
  }
  settings.memory_use = degrees.attention_dp > 1 ? 0.75 : 0.9;
  if (launch != nullptr) {
    settings.max_sequences = launch->batch;
  } else if (row.model_key == "deepseek-r1" && std::llround(row.load.value_or(0.0)) == kWide) {
    settings.max_sequences = kWideSlots / degrees.attention_dp;
  }
}

// SGLang states its limits for all ranks of attention dp together.
void set_sglang_h100(const ServingRow& row, bool is_prefill, const serving::Degrees& degrees,
                     serving::EngineSettings& settings) {
  const bool is_wide = row.decode_dp_attn.value_or(0) > 0;
  if (is_prefill) {
    settings.max_batched_tokens = 2048;
    settings.max_sequences = is_wide ? 4 : 2;
    settings.memory_use = 0.6;
  } else if (*row.osl > 4096) {
    const bool drafts = row.spec_method == "mtp";
    settings.max_sequences = drafts ? 64 : is_wide ? 16 : 32;
  } else {
    settings.max_sequences = is_wide ? 64 : 128;
  }
  settings.max_sequences = std::max<std::int64_t>(1, settings.max_sequences / degrees.attention_dp);
}

// With DeepEP, fp8 experts run on DeepGEMM.
void set_sglang_gb200(const ServingRow& row, bool is_prefill, const serving::Degrees& degrees,
                      serving::EngineSettings& settings) {
  const bool is_short = *row.isl < 4096, is_wide = row.decode_dp_attn.value_or(0) > 0;
  if (degrees.attention_dp > 1 && (!is_prefill || row.precision == "fp8")) {
    settings.stack = "sglang-deepep";
    settings.redundant_experts = 32;
    if (row.precision == "fp8") { settings.expert_math_rate_of["fp8"] = kDeepGemmRate; }
  }
  if (is_prefill && degrees.attention_dp > 1) {
    settings.max_batched_tokens = 16'384;  // of a rank
  } else if (is_prefill) {
    settings.max_batched_tokens = is_short ? 8192 : is_wide ? 131'072 : 24'576;
  } else if (!is_wide && row.precision == "fp8") {
    settings.max_sequences = 128;
  }
}

void set_sglang_dynamo(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                       serving::EngineSettings& settings) {
  const bool is_prefill = pool == "prefill";
  if (row.gpu_type == "H100-SXM") {
    set_sglang_h100(row, is_prefill, degrees, settings);
  } else {
    set_sglang_gb200(row, is_prefill, degrees, settings);
  }
}

}  // namespace

void set_dynamo_pool(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                     serving::EngineSettings& settings) {
  settings.token_host = {};  // Dynamo's own front ends stream tokens
  if (settings.name == "tensorrt-llm") { set_trtllm_pool(row, pool, degrees, settings); }
  if (settings.name == "sglang") { set_sglang_dynamo(row, pool, degrees, settings); }
}

}  // namespace orrery::validate
