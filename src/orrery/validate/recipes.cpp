// Megatron-Bridge's performance recipes for MoE models that use other software than their family.
//
// Read in NVIDIA-NeMo/Megatron-Bridge:
// scripts/performance/configs/{deepseek,gpt_oss,kimi,qwen}/*_workload_base_configs.py at 0426418, 07eea52, 013180a and
// 01b2977; src/megatron/bridge/perf_recipes/qwen for the Qwen3 recipes that call _enable_hybridep_full_iteration_mxfp8;
// GPTOSSProvider for its dispatcher; 2026-11.
#include <algorithm>
#include <array>

#include "orrery/validate/rules.hpp"
#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

// Recipes in MXFP8 that record the whole iteration (cuda_graph_impl full_iteration), with the fused grouped MLP
// (cutedsl_fused_grouped_mlp) and dispatch overlapped with another micro-batch (moe_a2a_overlap). A row with another
// layout is another recipe, of an earlier release.
struct Recorded {
  std::string_view model, gpu_type;  // beginning of the model's name as `dashed` spells it; the machine
  std::int64_t pp, vpp, ep, micro_batch;
};
constexpr std::array kRecorded = {
    Recorded{"deepseek", "GB300", 2, 8, 32, 1},    Recorded{"deepseek", "GB200", 4, 4, 64, 1},
    Recorded{"deepseek", "B300", 8, 2, 8, 1},      Recorded{"kimi", "GB300", 4, 4, 64, 1},
    Recorded{"gpt-oss", "GB300", 1, 1, 16, 4},     Recorded{"gpt-oss", "GB200", 1, 1, 64, 4},
    Recorded{"qwen3-30b", "GB300", 1, 1, 8, 8},    Recorded{"qwen3-30b", "GB200", 1, 1, 8, 4},
    Recorded{"qwen3-30b", "B300", 1, 1, 8, 8},     Recorded{"qwen3-30b", "B200", 1, 1, 8, 4},
    Recorded{"qwen3-235b", "GB300", 4, 12, 32, 2}, Recorded{"qwen3-235b", "GB200", 8, 3, 32, 1},
};

// Recipes with the dispatcher that sends every copy (moe_token_dispatcher_type alltoall): of Qwen3 235B on hosts of
// eight, on B300 while it took one sequence at a time (two with HybridEP); of GPT-OSS, whose provider has it, all that
// do not choose HybridEP, which those in MXFP8 do.
struct AllToAll {
  std::string_view model, gpu_type;  // empty: any
  bool block_scaled_too;
  std::int64_t micro_batch = 0;  // 0: any
};
constexpr std::array kAllToAll = {
    AllToAll{"qwen3-235b", "H100-SXM", true},
    AllToAll{"qwen3-235b", "B200", true},
    AllToAll{"qwen3-235b", "B300", true, 1},
    AllToAll{"gpt-oss", "", false},
};

bool is_block_scaled(std::string_view precision) {
  return precision.starts_with("mxfp8") || precision.starts_with("fp8-mx");
}

}  // namespace

const StackFacts* recipe_of(const TrainingRow& row) {
  if (!row.family.starts_with("mbridge_moe")) { return nullptr; }
  const std::string model = dashed(row.model);
  const MachineFacts* machine = machine_of(row.gpu_type);
  const bool block_scaled = is_block_scaled(row.precision);
  const auto stated = [](const std::optional<std::int64_t>& degree) { return degree.value_or(1); };
  const bool recorded = std::any_of(kRecorded.begin(), kRecorded.end(), [&](const Recorded& r) {
    return model.starts_with(r.model) && machine == machine_of(r.gpu_type) && stated(row.pp) == r.pp &&
           stated(row.vpp) == r.vpp && stated(row.ep) == r.ep && stated(row.micro_batch) == r.micro_batch;
  });
  if (block_scaled && recorded) { return &kNemoRecorded; }
  const bool all_to_all = std::any_of(kAllToAll.begin(), kAllToAll.end(), [&](const AllToAll& a) {
    const bool there = a.gpu_type.empty() || machine == machine_of(a.gpu_type);
    const bool sequences = a.micro_batch == 0 || stated(row.micro_batch) == a.micro_batch;
    return model.starts_with(a.model) && there && sequences && (a.block_scaled_too || !block_scaled);
  });
  return all_to_all ? &kNemoAllToAll : nullptr;
}

}  // namespace orrery::validate
