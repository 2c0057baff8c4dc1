// `orrery completion`: scripts for shells.
#include <memory>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
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

Result<int> run(const std::string& shell) {
  if (shell.empty()) { return fail(flag_place("SHELL"), "is missing; use bash, zsh or fish"); }
  const std::string script = completion_script(shell, all_commands());
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
