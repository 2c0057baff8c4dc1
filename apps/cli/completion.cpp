// `orrery completion`: scripts for shells.
#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/plan_serve.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace of_completion {
namespace {

constexpr const char* kFooter = R"(Examples
  source <(orrery completion bash)
  orrery completion zsh > "${fpath[1]}/_orrery"
  orrery completion fish > ~/.config/fish/completions/orrery.fish
)";

// All commands; `plan` also with the flags of --task serve.
std::vector<Command> commands_to_complete() {
  std::vector<Command> commands = all_commands();
  const auto plan = std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.name() == "plan"; });
  const Command serving = plan_serve_command();
  for (const Flag& flag : serving.flags()) {
    const bool is_known = std::any_of(plan->flags().begin(), plan->flags().end(),
                                      [&flag](const Flag& known) { return known.name == flag.name; });
    if (!is_known) {
      plan->option(flag, [](const std::string&) {});
    }
  }
  return commands;
}

Result<int> run(const std::string& shell) {
  if (shell.empty()) { return fail(flag_place("SHELL"), "is missing; use bash, zsh or fish"); }
  const std::string script = completion_script(shell, commands_to_complete());
  if (script.empty()) { return fail(flag_place("SHELL"), quote(shell) + " is not supported; use bash, zsh or fish"); }
  print(script);
  return 0;
}

}  // namespace
}  // namespace of_completion

Command completion_command() {
  using namespace of_completion;
  Command command("completion", "Print a script that completes commands, flags and catalogue names in a shell.");
  const auto shell = std::make_shared<std::string>();
  command.positional({"shell", "SHELL", "bash, zsh or fish", "", {"bash", "zsh", "fish"}},
                     [shell](const std::string& name) { *shell = name; });
  command.footer(kFooter);
  command.action([shell] { return run(*shell); });
  return command;
}

}  // namespace orrery::cli
