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

// What the stack's data says that it cannot run: task, class of model, maker of the accelerator, and, if the request
// names the stack, the schedule. Empty for stacks without limits, such as ideal.
[[nodiscard]] std::vector<Diagnostic> stack_problems(const Request& request, const workload::Model& model,
                                                     const hardware::Accelerator& accelerator,
                                                     const hardware::Stack& stack);

}  // namespace orrery::estimate
