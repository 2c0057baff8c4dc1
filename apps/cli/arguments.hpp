// What is wrong with the arguments of a command, before anything reads them: all of it at once, each with its flag.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/command.hpp"

namespace orrery::cli {

// "--tp N".
[[nodiscard]] std::string shown(const Flag& flag);

// Unknown flags (with the nearest known one), flags without their value, switches with one, arguments too many.
[[nodiscard]] std::vector<Diagnostic> argument_mistakes(const Command& command,
                                                        const std::vector<std::string>& arguments);

}  // namespace orrery::cli
