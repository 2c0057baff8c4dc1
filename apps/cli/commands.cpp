#include "apps/cli/commands.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace orrery::cli {

namespace {

// Declaring the flags of all commands takes as long as an estimate, so that a run declares those of its own only.
struct Entry {
  std::string_view name;
  Command (*make)();
};

constexpr std::array kEntries = std::to_array<Entry>({
    {"estimate", estimate_command},
    {"plan", plan_command},
    {"validate", validate_command},
    {"calibrate", calibrate_command},
    {"trace", trace_command},
    {"generate", generate_command},
    {"simulate", simulate_command},
    {"serve", serve_command},
    {"collective", collective_command},
    {"campaign", campaign_command},
    {"jobs", jobs_command},
    {"explore", explore_command},
    {"report", report_command},
    {"list", list_command},
    {"describe", describe_command},
    {"web", web_command},
    {"completion", completion_command},
});

}  // namespace

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) { names.emplace_back(entry.name); }
  return names;
}

std::optional<Command> command_named(std::string_view name) {
  const auto* const entry =
      std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) { return e.name == name; });
  if (entry == kEntries.end()) { return std::nullopt; }
  Command command = entry->make();
  assert(command.name() == name);
  return command;
}

std::vector<Command> all_commands() {
  std::vector<Command> commands;
  for (const Entry& entry : kEntries) { commands.push_back(entry.make()); }
  return commands;
}

}  // namespace orrery::cli
