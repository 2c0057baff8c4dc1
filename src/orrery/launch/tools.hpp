// The writers of the tools, one file each. See launch.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/launch/launch.hpp"
#include "orrery/launch/sheet.hpp"

namespace orrery::launch {

[[nodiscard]] Launch megatron(const TrainingRun& run);
[[nodiscard]] Launch nemo(const TrainingRun& run);
[[nodiscard]] Launch deepspeed(const TrainingRun& run);
[[nodiscard]] Launch torchtitan(const TrainingRun& run);

// Megatron-LM and Megatron-Bridge share a core and most options: settings have the names of Megatron-LM's arguments.
enum class Dialect : std::uint8_t { megatron_lm, bridge };
[[nodiscard]] Sheet megatron_sheet(const TrainingRun& run, Dialect dialect);
void add_model_settings(const TrainingRun& run, Dialect dialect, Sheet& sheet);

// ZeRO 2 and 3 use Megatron-FSDP.
[[nodiscard]] bool uses_fsdp(const parallel::Plan& plan);

// Recompute as values of Megatron's arguments; empty: the argument is left out.
struct MegatronRecompute {
  std::string_view granularity, method;
  std::vector<std::string_view> modules;
  std::int64_t num_layers = 0;
};
[[nodiscard]] MegatronRecompute megatron_recompute(const parallel::Plan& plan);
// "--recompute-modules layernorm,moe_act".
[[nodiscard]] std::string recompute_modules_flag(const parallel::Plan& plan);
// "--recompute-layers 4".
[[nodiscard]] std::string recompute_layers_flag(const parallel::Plan& plan);

// Arguments of Megatron-DeepSpeed's pretrain_gpt.py, with notes on what they cannot express.
[[nodiscard]] Sheet megatron_deepspeed_sheet(const TrainingRun& run);

}  // namespace orrery::launch
