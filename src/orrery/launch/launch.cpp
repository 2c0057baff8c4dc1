#include "orrery/launch/launch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/launch/tools.hpp"

namespace orrery::launch {

namespace {

// Runs that no tool here launches.
std::vector<Diagnostic> refusals(Tool tool, const TrainingRun& run) {
  std::vector<Diagnostic> found;
  const auto refuse = [&](const char* flag, std::string message) {
    found.push_back({{"", 0, 0, flag}, std::move(message)});
  };
  if (run.job.is_inference()) {
    refuse("--task",
           fmt::format("\"inference\" is not a training task, and {} runs training; valid: pretrain, finetune",
                       name_of(tool)));
  }
  const auto& model = run.model;
  if (model.encoder_layers > 0 || !model.causal || model.is_vision()) {
    refuse(
        "--model",
        fmt::format("{} is not a causal decoder; --emit is not built yet for encoders, vision models and recommenders",
                    quoted(model.name)));
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
              fmt::format("{} is not a launcher; {}", quoted(name),
                          near ? fmt::format("did you mean {}?", quoted(*near)) : "valid: " + join(names, ", ")));
}

std::int64_t devices_per_node(const hardware::Cluster& cluster) {
  return std::max<std::int64_t>(1, std::min(cluster.node_size(), cluster.devices));
}

Result<Launch> emit(Tool tool, const TrainingRun& run) {
  if (auto found = refusals(tool, run); !found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  switch (tool) {
    case Tool::megatron: return megatron(run);
    case Tool::deepspeed: return deepspeed(run);
    case Tool::nemo: return nemo(run);
    case Tool::torchtitan: return torchtitan(run);
  }
  return fail("no such launcher");
}

}  // namespace orrery::launch
