// Pools behind Dynamo, from github:SemiAnalysisAI/InferenceX and its recipes, github:NVIDIA/srt-slurm: for
// TensorRT-LLM recipes/trtllm, for SGLang recipes/gb200-*, gb300-*, h100 and h200.
#include <algorithm>
#include <array>
#include <cmath>

#include "orrery/validate/pool_recipes.hpp"
#include "orrery/validate/serving_launch.hpp"

namespace orrery::validate {

namespace {

bool is_short(const ServingRow& row) { return *row.isl < 4096; }

struct PrefillLimits {
  std::int64_t sequences, tokens;  // of an iteration of a rank
  double memory;                   // of what weights leave
};

PrefillLimits trtllm_prefill(const ServingRow& row) {
  const bool is_fp4 = row.precision == "fp4", prompts_are_short = is_short(row);
  const double grace_memory = is_fp4 ? 0.6 : 0.4;
  const auto of = [&](PrefillLimits with_short, PrefillLimits with_long) {
    return prompts_are_short ? with_short : with_long;
  };
  if (row.gpu_type == "H100-SXM") { return of({2, 2048, 0.6}, {1, 8224, 0.3}); }
  if (row.gpu_type == "H200-SXM") { return of({8, 8192, 0.6}, {2, 16'640, 0.85}); }
  if (row.gpu_type == "B300" && !is_fp4) { return {8, 8320, 0.6}; }
  if (row.gpu_type == "B200" && !is_fp4) { return of({16, 16'384, 0.4}, {1, 8320, 0.2}); }
  if (row.gpu_type == "B200" || row.gpu_type == "B300") { return of({8, 10'240, 0.75}, {2, 16'896, 0.75}); }
  if (row.measured < "2026-01-30") { return of({4, 4608, grace_memory}, {1, 8448, grace_memory}); }
  return of({16, 16'384, grace_memory}, {2, 16'384, grace_memory});
}

// Where no list has the run: the largest usual size that clients fill on every rank of attention dp; of other engines
// the smallest that clients exceed by at most 30 %.
std::int64_t usual_batch(const ServingRow& row, const serving::Degrees& degrees) {
  constexpr std::array<std::int64_t, 15> kSizes = {1, 2, 4, 8, 16, 32, 48, 64, 128, 192, 256, 384, 512, 768, 1024};
  const std::int64_t queues = std::max<std::int64_t>(1, degrees.replicas * degrees.attention_dp);
  const double clients = row.load.value_or(0.0) / static_cast<double>(queues);
  constexpr double kMore = 1.3;
  for (std::size_t i = 0; i + 1 < kSizes.size(); ++i) {
    const auto size = static_cast<double>(kSizes[i]), next = static_cast<double>(kSizes[i + 1]);
    if (degrees.attention_dp > 1 ? clients < next : clients <= kMore * size) { return kSizes[i]; }
  }
  return kSizes.back();
}

// On GB200 and GB300 recipes have DeepGEMM in fp8; on B200 for short prompts and with attention dp.
bool has_deep_gemm(const ServingRow& row, bool is_prefill, const serving::Degrees& degrees) {
  if (row.precision != "fp8" || row.gpu_type == "B300") { return false; }
  if (!is_prefill) { return degrees.attention_dp > 1; }
  return row.gpu_type != "B200" || is_short(row);
}

void set_trtllm_pool(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                     serving::EngineSettings& settings) {
  const auto recipe = trtllm_recipe(row);
  const bool is_prefill = pool == "prefill";
  if (recipe && recipe->drafts > 0) { settings.speculative_tokens = recipe->drafts; }
  if (has_deep_gemm(row, is_prefill, degrees)) { settings.expert_math_rate_of["fp8"] = kDeepGemmRate; }
  if (is_prefill) {
    const PrefillLimits limits = trtllm_prefill(row);
    settings.max_sequences = limits.sequences;
    settings.max_batched_tokens = limits.tokens;
    settings.memory_use = limits.memory;
    return;
  }
  settings.memory_use = degrees.attention_dp > 1 ? 0.75 : 0.9;
  settings.max_sequences = recipe && recipe->batch > 0 ? recipe->batch : usual_batch(row, degrees);
}

// Of weights and cache (mem-fraction-static). Prefill engines on GB200 and GB300 state their tokens instead.
double sglang_memory(const ServingRow& row, bool is_prefill) {
  const bool drafts = row.spec_method == "mtp", is_wide = row.decode_dp_attn.value_or(0) > 0;
  if (row.gpu_type == "H100-SXM") { return is_prefill ? 0.6 : is_wide && drafts ? 0.85 : 0.9; }
  if (row.gpu_type == "H200-SXM") { return drafts && !is_prefill ? 0.75 : 0.82; }
  if (!is_wide) { return drafts ? 0.9 : 0.95; }
  return drafts ? 0.75 : 0.82;
}

// SGLang states its limits for all ranks of attention dp together.
void set_sglang_h100(const ServingRow& row, bool is_prefill, const serving::Degrees& degrees,
                     serving::EngineSettings& settings) {
  const bool is_wide = row.decode_dp_attn.value_or(0) > 0;
  if (is_prefill) {
    settings.max_batched_tokens = 2048;
    settings.max_sequences = is_wide ? 4 : 2;
  } else if (*row.osl > 4096) {
    const bool drafts = row.spec_method == "mtp";
    settings.max_sequences = drafts ? 64 : is_wide ? 16 : 32;
  } else {
    settings.max_sequences = is_wide ? 64 : 128;
  }
  settings.max_sequences = std::max<std::int64_t>(1, settings.max_sequences / degrees.attention_dp);
}

// Tokens that all sequences of a rank have in the cache: what memory leaves, but for what recipes state.
std::int64_t sglang_tokens(const ServingRow& row, bool is_prefill, const serving::Degrees& degrees) {
  const bool is_fp4 = row.precision == "fp4", is_wide = row.decode_dp_attn.value_or(0) > 0;
  if (!is_prefill) { return is_fp4 && is_wide && !is_short(row) ? 524'288 : 0; }
  if (degrees.attention_dp > 1) { return is_fp4 ? 131'072 : 524'288; }
  if (is_wide) { return 131'072; }
  return is_short(row) ? 8192 : 32'768;
}

// With DeepEP, fp8 experts run on DeepGEMM.
void set_sglang_grace(const ServingRow& row, bool is_prefill, const serving::Degrees& degrees,
                      serving::EngineSettings& settings) {
  const bool is_wide = row.decode_dp_attn.value_or(0) > 0;
  if (degrees.attention_dp > 1 && (!is_prefill || row.precision == "fp8")) {
    settings.stack = "sglang-deepep";
    settings.redundant_experts = 32;
    if (row.precision == "fp8") { settings.expert_math_rate_of["fp8"] = kDeepEpRate; }
  }
  if (is_prefill && degrees.attention_dp > 1) {
    settings.max_batched_tokens = 16'384;  // of a rank
  } else if (is_prefill) {
    settings.max_batched_tokens = is_short(row) ? 8192 : is_wide ? 131'072 : 24'576;
  } else if (!is_wide && row.precision == "fp8") {
    settings.max_sequences = 128;
  }
  settings.blocks = sglang_tokens(row, is_prefill, degrees) * degrees.attention_dp / settings.block_tokens;
}

// By the prefill and decode engines of its recipes.
void set_sglang_h200(const ServingRow& row, bool is_prefill, const serving::Degrees& degrees,
                     serving::EngineSettings& settings) {
  const bool drafts = row.spec_method == "mtp", is_wide = row.decode_dp_attn.value_or(0) > 0;
  const std::int64_t engines = row.decode_workers.value_or(1);
  const auto of = [&](std::int64_t plain, std::int64_t with_drafts) { return drafts ? with_drafts : plain; };
  if (is_prefill) {
    settings.max_batched_tokens = is_short(row) || is_wide ? 163'840 : 32'768;
    settings.max_sequences = is_short(row) ? 256 : 16;
  } else if (is_short(row)) {
    settings.max_sequences = engines > 6 ? of(256, 64) : of(512, 128);
  } else if (is_wide) {
    settings.max_sequences = of(256, 192);
  } else if (engines == 3) {
    settings.max_sequences = row.prefill_workers == 2 ? of(128, 16) : 32;
  } else {
    settings.max_sequences = engines > 6 ? of(8, 2) : 16;
  }
  settings.max_sequences = std::max<std::int64_t>(1, settings.max_sequences / degrees.attention_dp);
}

void set_sglang_dynamo(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                       serving::EngineSettings& settings) {
  const bool is_prefill = pool == "prefill";
  settings.memory_use = sglang_memory(row, is_prefill);
  if (row.gpu_type == "H100-SXM") {
    set_sglang_h100(row, is_prefill, degrees, settings);
  } else if (row.gpu_type == "H200-SXM") {
    set_sglang_h200(row, is_prefill, degrees, settings);
  } else if (row.gpu_type.starts_with("GB")) {
    set_sglang_grace(row, is_prefill, degrees, settings);
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
