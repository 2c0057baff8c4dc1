#include "orrery/estimate/stack_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::estimate {

namespace {

using hardware::StackLimits;

constexpr std::string_view kRecommender = "recommender";

bool allows(const std::vector<std::string>& limits, std::string_view value) {
  return limits.empty() || std::find(limits.begin(), limits.end(), value) != limits.end();
}

}  // namespace

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
  const bool names_both = !request.stack.empty() && request.schedule;
  if (names_both) { require(limits.schedules, config::enum_name(*request.schedule), "has the schedules"); }
  return found;
}

}  // namespace orrery::estimate
