#include "apps/cli/commands.hpp"

namespace orrery::cli {

std::vector<Command> all_commands() {
  std::vector<Command> commands;
  commands.push_back(estimate_command());
  commands.push_back(plan_command());
  commands.push_back(validate_command());
  commands.push_back(calibrate_command());
  commands.push_back(trace_command());
  commands.push_back(generate_command());
  commands.push_back(simulate_command());
  commands.push_back(collective_command());
  commands.push_back(list_command());
  commands.push_back(describe_command());
  commands.push_back(web_command());
  commands.push_back(completion_command());
  for (auto& command : planned_commands()) { commands.push_back(std::move(command)); }
  return commands;
}

}  // namespace orrery::cli
