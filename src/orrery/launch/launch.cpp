#include "orrery/launch/launch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/launch/tools.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::launch {

namespace {

// Errors of runs that the launchers do not support.
std::vector<Diagnostic> unsupported(Tool tool, const TrainingRun& run) {
  std::vector<Diagnostic> found;
  const auto add_error = [&](const char* flag, std::string message) {
    found.push_back({{"", 0, 0, flag}, std::move(message)});
  };
  if (run.job.is_inference()) {
    add_error("--task",
              fmt::format("\"inference\" is not a training task, and {} runs training; valid: pretrain, finetune",
                          name_of(tool)));
  }
  const auto& model = run.model;
  if (model.encoder_layers > 0 || !model.causal || model.is_vision()) {
    add_error(
        "--model",
        fmt::format("{} is not a causal decoder; --emit does not support encoders, vision models and recommenders",
                    quote(model.name)));
  }
  // The software of the estimate pads heads; none of these tools does.
  parallel::Job unpadded = run.job;
  unpadded.pads_heads = false;
  if (unpadded.heads(model, run.plan.tp) != run.job.heads(model, run.plan.tp)) {
    for (auto& problem : parallel::problems(model, unpadded, run.plan, run.plan.devices())) {
      problem.message += fmt::format("; {} does not pad heads", name_of(tool));
      found.push_back(std::move(problem));
    }
  }
  return found;
}

}  // namespace

std::string_view name_of(Tool tool) {
  switch (tool) {
    case Tool::megatron: return "megatron";
    case Tool::deepspeed: return "deepspeed";
    case Tool::nemo: return "nemo";
    case Tool::torchtitan: return "torchtitan";
  }
  return "";
}

Result<Tool> tool_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Tool tool : kAllTools) {
    if (name == name_of(tool)) { return tool; }
    names.emplace_back(name_of(tool));
  }
  const auto near = nearest(name, names);
  return fail(Place{"", 0, 0, "--emit"},
              fmt::format("{} is not a launcher; {}", quote(name),
                          near ? fmt::format("did you mean {}?", quote(*near)) : "valid: " + join(names, ", ")));
}

std::int64_t devices_per_node(const hardware::Cluster& cluster) {
  return std::max<std::int64_t>(1, std::min(cluster.node_size(), cluster.devices));
}

namespace {

Result<Launch> emit_as_written(Tool tool, const TrainingRun& run) {
  switch (tool) {
    case Tool::megatron: return megatron(run);
    case Tool::deepspeed: return deepspeed(run);
    case Tool::nemo: return nemo(run);
    case Tool::torchtitan: return torchtitan(run);
  }
  return fail("no such launcher");
}

// Every launcher writes results::kMainChoices and these, or has notes about them (coverage_test.cpp), whether or not
// they have an effect.
constexpr std::array<std::string_view, 6> kOtherWritten{"recompute_modules", "recompute_layers",   "first_stage_layers",
                                                        "last_stage_layers", "embedding_as_layer", "head_as_layer"};

bool is_written(std::string_view name) {
  const auto has = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return has(results::kMainChoices) || has(kOtherWritten);
}

// "--no-dp-overlap", "--shard 4", "--tp-overlap ring".
std::string flag_text(const parallel::PlanChoice& choice, const parallel::Plan& plan) {
  const std::int64_t value = choice.parts.front().get(plan);
  const std::string flag = parallel::flag_of(choice);
  if (choice.kind == parallel::ChoiceKind::boolean) { return value != 0 ? flag : "--no-" + flag.substr(2); }
  if (choice.kind == parallel::ChoiceKind::number) { return fmt::format("{} {}", flag, value); }
  const bool is_name = choice.kind == parallel::ChoiceKind::name;
  return fmt::format("{} {}", flag,
                     is_name ? choice.names[static_cast<std::size_t>(value)] : parallel::text_of(choice, plan));
}

// A choice that changes neither the text nor the notes has no option: adds a note.
Result<void> note_others(Tool tool, const TrainingRun& run, Launch& launch) {
  for (const auto& choice : parallel::plan_choices()) {
    const auto& part = choice.parts.front();
    const std::int64_t default_value = part.get(parallel::Plan{});
    if (is_written(choice.name) || choice.of_recommenders || part.get(run.plan) == default_value) { continue; }
    TrainingRun without = run;
    part.set(without.plan, default_value);
    ORRERY_TRY(other, emit_as_written(tool, without));
    if (other.text != launch.text || other.notes != launch.notes) { continue; }
    launch.notes.push_back(fmt::format("{}: {} has no option for it", flag_text(choice, run.plan), name_of(tool)));
  }
  return {};
}

// Formats of a job that launchers have no option for.
void note_formats(Tool tool, const TrainingRun& run, Launch& launch) {
  const workload::Formats& formats = run.job.formats;
  if (formats.weights) {
    const bool by_script = tool == Tool::deepspeed;
    launch.notes.push_back(fmt::format(
        "--weight-format {}: {}", hardware::name_of(*formats.weights),
        by_script ? "the training script loads the frozen weights in this format (for example with bitsandbytes)"
                  : fmt::format("{} has no option for it: weights are stored in 16 bits", name_of(tool))));
  }
  if (formats.attention) {
    launch.notes.push_back(fmt::format("--attention-precision {}: {} has no option for it",
                                       hardware::name_of(*formats.attention), name_of(tool)));
  }
}

// What no tool offloads.
void note_offload(Tool tool, const TrainingRun& run, Launch& launch) {
  const parallel::Offload& offload = run.plan.offload;
  for (const auto& [on, what, instead] : {std::tuple{offload.tables, "tables", "embedding tables stay on the device"},
                                          {offload.gradients, "gradients", "gradients are reduced on the network"}}) {
    if (!on) { continue; }
    launch.notes.push_back(fmt::format("--offload {}: {} has no option for it: {}", what, name_of(tool), instead));
  }
}

}  // namespace

Result<Launch> emit(Tool tool, const TrainingRun& run) {
  if (auto found = unsupported(tool, run); !found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  ORRERY_TRY(launch, emit_as_written(tool, run));
  if (auto noted = note_others(tool, run, launch); !noted) { return tl::make_unexpected(noted.error()); }
  note_formats(tool, run, launch);
  note_offload(tool, run, launch);
  return launch;
}

}  // namespace orrery::launch
