#include "orrery/estimate/stack_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::estimate {

namespace {

using hardware::StackLimits;

constexpr std::string_view kRecommender = "recommender", kHybrid = "hybrid";
constexpr int kZeroStages = 4;

bool allows(const std::vector<std::string>& limits, std::string_view value) {
  return limits.empty() || std::find(limits.begin(), limits.end(), value) != limits.end();
}

// Of the values 0, 1, ... with these names, those that are allowed.
ChoiceLimit limit_of(parallel::PlanField field, const std::vector<std::string>& names,
                     const std::vector<std::string>& allowed) {
  ChoiceLimit limit{field, {}, {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (allows(allowed, names[i])) {
      limit.values.push_back(static_cast<std::int64_t>(i));
    } else {
      limit.missing.push_back(names[i]);
    }
  }
  return limit;
}

template <class Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [value, name] : config::EnumNames<Enum>::value) { names.emplace_back(name); }
  return names;
}

}  // namespace

std::vector<ChoiceLimit> choice_limits(const hardware::Stack& stack) {
  using parallel::PlanField;
  const StackLimits& limits = stack.limits;
  std::vector<std::string> stages;
  for (int stage = 0; stage < kZeroStages; ++stage) { stages.push_back(std::to_string(stage)); }
  std::vector<ChoiceLimit> all{
      limit_of(PlanField::schedule, names_of<parallel::ScheduleKind>(), limits.schedules),
      limit_of(PlanField::zero, stages, limits.shardings),
      limit_of(PlanField::tp_overlap, names_of<parallel::TpOverlap>(), limits.overlaps),
  };
  if (!allows(limits.shardings, kHybrid)) { all.push_back({PlanField::shard, {0}, {std::string(kHybrid)}}); }
  if (stack.optimizer.kind == hardware::OptimizerKind::muon) {
    all.push_back({PlanField::optimizer_device, {0}, {"host"}});
  }
  std::erase_if(all, [](const ChoiceLimit& limit) { return limit.missing.empty(); });
  return all;
}

int default_zero(const hardware::Stack& stack) {
  const auto& shardings = stack.limits.shardings;
  if (allows(shardings, "1")) { return 1; }
  for (int stage = kZeroStages - 1; stage > 0; --stage) {
    if (allows(shardings, std::to_string(stage))) { return stage; }
  }
  return 0;
}

std::string_view class_of(const workload::Model& model) {
  if (model.is_recommender()) { return kRecommender; }
  if (model.is_vision()) { return "vision"; }
  return model.encoder_layers > 0 ? "encoder-decoder" : "transformer";
}

std::string stack_name(const Request& request, const workload::Model& model, const hardware::Accelerator& accelerator) {
  if (!request.stack.empty()) { return request.stack; }
  const bool of_nvidia = accelerator.maker.empty() || accelerator.maker == "NVIDIA";
  if (model.is_recommender()) { return of_nvidia ? "hugectr" : "ideal"; }
  if (request.task == parallel::Task::inference) { return "vllm"; }
  if (accelerator.maker == "AWS" && !model.is_vision()) { return "neuronx-distributed"; }
  return accelerator.maker == "Google" ? "maxtext" : "megatron-core";
}

std::vector<Diagnostic> stack_problems(const Request& request, const workload::Model& model,
                                       const hardware::Accelerator& accelerator, const hardware::Stack& stack) {
  const StackLimits& limits = stack.limits;
  std::vector<Diagnostic> found;
  const auto require = [&](const std::vector<std::string>& allowed, std::string_view value, std::string_view what) {
    if (value.empty() || allows(allowed, value)) { return; }
    found.push_back({{"", 0, 0, "--stack"},
                     fmt::format("{} {} {}, not {} (--stack ideal runs everything)", stack.name, what,
                                 join(allowed, ", "), value)});
  };
  require(limits.tasks, config::enum_name(request.task), "runs the tasks");
  require(limits.models, class_of(model), "runs models of class");
  require(limits.makers, accelerator.maker, "runs on accelerators of");
  const auto optimizer = request.optimizer.value_or(stack.optimizer.kind);
  if (request.optimizer_device == parallel::OptimizerDevice::host && optimizer == hardware::OptimizerKind::muon) {
    found.push_back({{"", 0, 0, "--optimizer-device"},
                     "host does not go together with --optimizer muon, whose products need the device"});
  }
  if (request.stack.empty()) { return found; }
  const auto word = [](const auto& given) { return given ? config::enum_name(*given) : std::string_view(); };
  require(limits.schedules, word(request.schedule), "has the schedules");
  require(limits.overlaps, word(request.tp_overlap), "has the overlaps of tensor-parallel communication");
  require(limits.optimizers, word(request.optimizer), "has the optimizers");
  require(limits.shardings, request.zero ? std::to_string(*request.zero) : "", "has the shardings (--zero)");
  require(limits.shardings, request.shard.value_or(0) > 0 ? kHybrid : "", "has the shardings");
  return found;
}

}  // namespace orrery::estimate
