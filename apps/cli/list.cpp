// `orrery list`: what the catalogue holds.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/json.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kFooter = R"(Examples
  orrery list models
  orrery list accelerators --unverified
  orrery list clusters --json

A figure is unverified when nobody has seen the source it is said to come from; "orrery describe NAME" shows the sources.
)";

struct Options {
  std::string kind;
  bool unverified = false;
  bool names = false;
  bool json = false;
};

Result<int> run(const Options& options) {
  const auto& kinds = listed_kinds();
  if (options.kind.empty()) { return fail(flag_place("KIND"), "is missing; one of " + join(kinds, ", ")); }
  if (std::find(kinds.begin(), kinds.end(), options.kind) == kinds.end()) {
    const auto near = nearest(options.kind, kinds);
    return fail(flag_place("KIND"),
                fmt::format("unknown kind {}; {}", orrery::quoted(options.kind),
                            near ? fmt::format("did you mean {}?", *near) : "one of " + join(kinds, ", ")));
  }
  ORRERY_TRY(entries, api::Orrery(data_directory()).list(options.kind));
  if (options.unverified) {
    std::erase_if(entries, [](const auto& entry) { return entry.unverified == 0; });
  }
  if (options.json) {
    print(report::listing_json(options.kind, entries));
  } else if (options.names) {
    std::string names;
    for (const auto& entry : entries) { names += entry.name + "\n"; }
    print(names);
  } else {
    print(report::listing_text(options.kind, entries));
  }
  return 0;
}

}  // namespace

const std::vector<std::string>& listed_kinds() {
  static const std::vector<std::string> kinds = {"models", "clusters", "accelerators", "stacks", "algorithms"};
  return kinds;
}

Command list_command() {
  Command command("list", "Catalogue entries of a kind, and how many of their figures are unverified.");
  const auto options = std::make_shared<Options>();
  const std::string output(kOutputGroup);
  command.positional({"kind", "KIND", join(listed_kinds(), ", "), "", listed_kinds()},
                     [options](const std::string& kind) { options->kind = kind; });
  command.toggle({"--unverified", "", "only entries with unverified figures", output},
                 [options](bool on) { options->unverified = on; });
  command.toggle({"--names", "", "only the names, one per line", output}, [options](bool on) { options->names = on; });
  command.toggle({"--json", "", "one JSON document (orrery.list/1), nothing else, on standard output", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
