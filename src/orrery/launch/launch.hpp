// A plan as the launch configuration of a training program: the arguments and files that run it.
//
// Pure functions from a run to text. A setting without an option in the program is never dropped: it becomes a note,
// and the text has it as a comment. docs/guide/launch.md lists the options and the releases that were read. Left out:
// inference, encoder-decoders and vision models (refused), learning rates, data, checkpoints (placeholders).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::launch {

enum class Tool : std::uint8_t {
  megatron,    // Megatron-LM: a shell script that runs pretrain_gpt.py
  deepspeed,   // DeepSpeed: ds_config.json, and the arguments of Megatron-DeepSpeed where it takes that
  nemo,        // NeMo's Megatron-Bridge: a shell script that runs a recipe with overrides
  torchtitan,  // torchtitan: a TOML job configuration
};
inline constexpr std::array kAllTools = {Tool::megatron, Tool::deepspeed, Tool::nemo, Tool::torchtitan};

// As `--emit` spells it.
[[nodiscard]] std::string_view name_of(Tool tool);
[[nodiscard]] Result<Tool> tool_named(std::string_view name);

// A training run. `model` is complete, and the plan is valid for it.
struct TrainingRun {
  workload::Model model;
  parallel::Job job;
  parallel::Plan plan;
  hardware::Stack stack;
  std::int64_t devices_per_node = 1;  // devices that share the innermost network dimension
};

struct Launch {
  std::string text;                // ready to save; ends with a line end
  std::vector<std::string> notes;  // settings that `text` cannot express, each "--flag value: what happens instead"
  // Fields of the model's description that notes are about; `text` states all others (facts.hpp).
  std::vector<std::string> not_said = {};
};

// Devices of a run that share a node: those of the cluster's innermost dimension, or fewer when there are fewer.
[[nodiscard]] std::int64_t devices_per_node(const hardware::Cluster& cluster);

// Fails for runs that no tool here launches: inference, models with an encoder, models that are not causal.
[[nodiscard]] Result<Launch> emit(Tool tool, const TrainingRun& run);

}  // namespace orrery::launch
