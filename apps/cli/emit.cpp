#include "apps/cli/emit.hpp"

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace {

// "emitted: llama-3.1-405b on 16384 devices of dgx-h100: 5.45 s per step, 61.2 GiB of 75.2 GiB per device".
std::vector<std::string> summary(const results::Estimate& estimate) {
  const auto& memory = estimate.memory;
  std::vector<std::string> lines = {
      fmt::format("emitted: {} on {} of {}: {} per step, {} of {} per device", estimate.model,
                  counted(estimate.devices, "device"), estimate.cluster, config::format_seconds(estimate.step_time),
                  config::format_bytes(memory.total()), config::format_bytes(memory.capacity))};
  if (!estimate.feasible) { lines.push_back("warning: the plan does not fit: " + results::why_infeasible(estimate)); }
  return lines;
}

}  // namespace

void EmitFlag::declare(Command& command, const std::string& what) const {
  std::vector<std::string> names;
  for (const auto tool : launch::kAllTools) { names.emplace_back(launch::name_of(tool)); }
  const std::string doc =
      fmt::format("print {} as a launch configuration and nothing else ({})", what, join(names, ", "));
  Flag flag{"--emit", "TOOL", doc, std::string(kOutputGroup), names};
  command.option(std::move(flag), [typed = typed_](const std::string& text) { *typed = text; });
}

Result<std::optional<launch::Tool>> EmitFlag::tool(const std::vector<std::pair<std::string, bool>>& others) const {
  if (!*typed_) { return std::optional<launch::Tool>{}; }
  ORRERY_TRY(tool, launch::tool_named(**typed_));
  std::vector<Diagnostic> found;
  for (const auto& [flag, given] : others) {
    if (given) {
      found.push_back(
          {flag_place("--emit"), "prints a launch configuration and nothing else; it cannot be combined with " + flag});
    }
  }
  if (!found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  return std::optional(tool);
}

Result<int> print_launch(const api::Orrery& orrery, const TypedRequest& typed, const estimate::Request& request,
                         launch::Tool tool) {
  const auto launched = orrery.launch(request, tool);
  if (!launched) { return tl::make_unexpected(typed.placed(launched.error())); }
  print(launched->launch.text);
  const auto aside = [](const std::string& line) { print_aside(report::printable(line) + "\n"); };
  for (const auto& line : summary(launched->answer.estimate)) { aside(line); }
  for (const auto& chosen : launched->answer.chosen) { aside("chosen: " + chosen); }
  for (const auto& note : launched->launch.notes) { aside("not included: " + note); }
  return 0;
}

}  // namespace orrery::cli
