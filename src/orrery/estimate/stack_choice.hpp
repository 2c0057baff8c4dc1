// Which software stack runs a job: the one that is given, or a default by task, model and accelerator; and what a stack
// cannot run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::estimate {

// "transformer", "encoder-decoder", "vision" or "recommender": the word of StackLimits::models.
[[nodiscard]] std::string_view class_of(const workload::Model& model);

// The catalogue's name, or a path, of the request's stack. Not given: vllm for inference, maxtext on Google's chips,
// hugectr for recommenders on NVIDIA's (ideal on others), megatron-core for everything else.
[[nodiscard]] std::string stack_name(const Request& request, const workload::Model& model,
                                     const hardware::Accelerator& accelerator);

// The values of a plan's choice that a stack has, as numbers (parallel::PlanPart) and names.
struct ChoiceLimit {
  parallel::PlanField field = parallel::PlanField::schedule;
  std::vector<std::int64_t> values;
  std::vector<std::string> missing;  // the other ones: "dualpipe"; of a number without a bound, its meaning: "hybrid"
};
// The choices of which a stack does not have all values: schedule, zero, shard, tp-overlap; and, with
// Muon, optimizer-device.
[[nodiscard]] std::vector<ChoiceLimit> choice_limits(const hardware::Stack& stack);

// The stage of ZeRO of a training plan that gives none: 1, or, if the stack does not have it, the highest that it has.
[[nodiscard]] int default_zero(const hardware::Stack& stack);

// What the stack's data says that it cannot run: task, class of model, maker of the accelerator, and, if the request
// names the stack, choices of the plan that the request gives. Empty for stacks without limits, such as ideal.
[[nodiscard]] std::vector<Diagnostic> stack_problems(const Request& request, const workload::Model& model,
                                                     const hardware::Accelerator& accelerator,
                                                     const hardware::Stack& stack);

}  // namespace orrery::estimate
