// Commands that are planned: each fails with "not built yet".
#include <array>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"

namespace orrery::cli {

namespace {

struct Planned {
  const char* name;
  const char* summary;
};

constexpr std::array<Planned, 2> kPlanned = {{
    {"explore", "Run a study of many jobs and store its results in a database."},
    {"report", "Render the results of a study as a web page."},
}};

}  // namespace

std::vector<Command> planned_commands() {
  std::vector<Command> commands;
  for (const auto& planned : kPlanned) {
    Command command(planned.name, planned.summary);
    command.planned();
    command.accept_anything();
    command.footer("Not built yet.\n");
    command.action([name = std::string(planned.name)]() -> Result<int> {
      return fail("\"orrery " + name + "\" is not built yet");
    });
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace orrery::cli
