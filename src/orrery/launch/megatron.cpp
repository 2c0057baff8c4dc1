// Megatron-LM: a shell script that runs pretrain_gpt.py.
#include <fmt/format.h>

#include "orrery/launch/tools.hpp"

namespace orrery::launch {

namespace {

constexpr std::string_view kMegatronSource = "NVIDIA/Megatron-LM megatron/training/arguments.py@000c4ac24f";

std::string line_of(const Setting& setting) {
  if (setting.value.empty()) { return setting.name; }
  const bool takes_words = setting.name == "--recompute-modules";
  return setting.name + " " + (takes_words ? setting.value : bash_word(setting.value));
}

// Learning rate, data and a checkpoint to start from: not part of the plan, but required to run.
std::vector<std::string> data_lines(const TrainingRun& run) {
  std::vector<std::string> lines = {
      "--mock-data",
      "--tokenizer-type NullTokenizer",
      fmt::format("--vocab-size {}", run.model.vocab - 1),  // it adds one for the end of a document
      "--lr 1e-4",
      "--train-iters 20",
      "--log-interval 1",
  };
  if (run.job.task == parallel::Task::finetune) {
    lines.emplace_back("--finetune");
    lines.emplace_back("--load \"${CHECKPOINT:?}\"");
  }
  return lines;
}

}  // namespace

Launch megatron(const TrainingRun& run) {
  Sheet sheet = megatron_sheet(run, Dialect::megatron_lm);
  if (run.job.adapter.rank > 0) {
    sheet.note(fmt::format("--lora {}", run.job.adapter.rank),
               "Megatron-LM has no adapters: this script trains all weights, with the memory and time of full "
               "fine-tuning; Megatron-Bridge (--emit nemo) has adapters");
  }
  std::string text =
      "#!/usr/bin/env bash\n" + heading(run, "pretrain_gpt.py of Megatron-LM", kMegatronSource, sheet.notes());
  text += "set -euo pipefail\n\n" + max_connections_line(run.plan);
  std::string arguments;
  for (const auto& section : sheet.sections()) {
    std::vector<std::string> lines;
    for (const auto& setting : section.settings) {
      if (setting.is_set) { lines.push_back(line_of(setting)); }
    }
    if (lines.empty()) { continue; }
    text += bash_array(section.title, lines);
    arguments += fmt::format(" \"${{{}[@]}}\"", section.title);
  }
  text += "# Replace: data, tokenizer, learning rate, checkpoints. The values below are for a first run.\n";
  text += bash_array("DATA", data_lines(run));
  text += bash_array("TORCHRUN", torchrun_arguments(run));
  text += fmt::format("torchrun \"${{TORCHRUN[@]}}\" pretrain_gpt.py{} \"${{DATA[@]}}\"\n", arguments);
  return {std::move(text), sheet.notes(), sheet.noted_fields()};
}

}  // namespace orrery::launch
