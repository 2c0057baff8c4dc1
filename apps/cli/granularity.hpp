// --granularity, which the commands that make graphs of a plan share.
#pragma once

#include <string>

#include "apps/cli/command.hpp"
#include "orrery/core/error.hpp"
#include "orrery/generate/options.hpp"

namespace orrery::cli {

[[nodiscard]] Flag granularity_flag(const std::string& heading);
[[nodiscard]] Result<generate::Granularity> granularity_of(const std::string& text);

}  // namespace orrery::cli
