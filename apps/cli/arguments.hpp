// Checks the arguments of a command before they are read: all errors together, each with its flag.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/command.hpp"

namespace orrery::cli {

// "--tp N".
[[nodiscard]] std::string shown(const Flag& flag);

// Unknown flags (with the nearest known one), flags given twice, flags without value, switches with a value, too many
// arguments.
[[nodiscard]] std::vector<Diagnostic> argument_mistakes(const Command& command,
                                                        const std::vector<std::string>& arguments);

}  // namespace orrery::cli
