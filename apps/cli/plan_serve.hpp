// `orrery plan --task serve`: the best deployment of an inference engine for a load and a service level.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/command.hpp"

namespace orrery::cli {

// Whether the arguments of `orrery plan` have the task "serve", whose flags are those of a deployment.
[[nodiscard]] bool is_serving_task(const std::vector<std::string>& arguments);
[[nodiscard]] Command plan_serve_command();

}  // namespace orrery::cli
