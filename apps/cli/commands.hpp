// The subcommands, one per file, in the order of the overview.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/command.hpp"

namespace orrery::cli {

[[nodiscard]] Command estimate_command();
[[nodiscard]] Command plan_command();
[[nodiscard]] Command validate_command();
[[nodiscard]] Command calibrate_command();
[[nodiscard]] Command trace_command();
[[nodiscard]] Command generate_command();
[[nodiscard]] Command simulate_command();
[[nodiscard]] Command serve_command();
[[nodiscard]] Command collective_command();
[[nodiscard]] Command campaign_command();
[[nodiscard]] Command jobs_command();
[[nodiscard]] Command explore_command();
[[nodiscard]] Command report_command();
[[nodiscard]] Command list_command();
[[nodiscard]] Command describe_command();
[[nodiscard]] Command web_command();
[[nodiscard]] Command completion_command();

[[nodiscard]] std::vector<std::string> command_names();
// Nothing: there is no such command.
[[nodiscard]] std::optional<Command> command_named(std::string_view name);
[[nodiscard]] std::vector<Command> all_commands();

// Kinds of catalogue entries, as arguments of `orrery list`.
[[nodiscard]] const std::vector<std::string>& listed_kinds();

// A completion script of "bash", "zsh" or "fish" for these commands; "" for any other shell.
[[nodiscard]] std::string completion_script(std::string_view shell, const std::vector<Command>& commands);

// Headings that several helps share.
inline constexpr std::string_view kOutputGroup = "Output";

}  // namespace orrery::cli
