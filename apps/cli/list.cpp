// `orrery list`: what the catalogue holds.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/citations.hpp"
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

// "unverified: why" -> "why".
std::string without_mark(const std::string& citation) {
  const std::size_t colon = citation.find(": ");
  return colon == std::string::npos ? citation : citation.substr(colon + 2);
}

// Every "sources" mapping of a description, wherever it is: a cluster holds its accelerator's and its links'.
void collect_unverified(const config::Node& node, const std::string& path, const std::string& entry,
                        std::vector<report::UnverifiedFigure>& figures) {
  for (const auto& member : node.members) {
    const bool cites = member.key == "sources" && member.value.kind == config::Kind::mapping;
    if (!cites) {
      collect_unverified(member.value, path + member.key + ".", entry, figures);
      continue;
    }
    for (const auto& source : member.value.members) {
      if (hardware::is_unverified(source.value.scalar)) {
        figures.push_back({entry, path + source.key, without_mark(source.value.scalar)});
      }
    }
  }
  for (const auto& item : node.items) {
    const config::Node* name = item.find("name");
    collect_unverified(item, path + (name == nullptr ? "" : name->scalar + "."), entry, figures);
  }
}

Result<std::vector<report::UnverifiedFigure>> unverified_figures(const api::Orrery& orrery,
                                                                 const std::vector<hardware::EntrySummary>& entries) {
  std::vector<report::UnverifiedFigure> figures;
  for (const auto& entry : entries) {
    ORRERY_TRY(yaml, orrery.describe(entry.name));
    ORRERY_TRY(description, config::parse_yaml(yaml, entry.name));
    collect_unverified(description, "", entry.name, figures);
  }
  return figures;
}

std::string names_text(const std::vector<hardware::EntrySummary>& entries) {
  std::string names;
  for (const auto& entry : entries) { names += entry.name + "\n"; }
  return names;
}

std::optional<Diagnostic> wrong_kind(const std::string& kind) {
  const auto& kinds = listed_kinds();
  if (kind.empty()) { return Diagnostic{flag_place("KIND"), "is missing; one of " + join(kinds, ", ")}; }
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) { return std::nullopt; }
  const auto near = nearest(kind, kinds);
  return Diagnostic{flag_place("KIND"),
                    fmt::format("unknown kind {}; {}", orrery::quoted(kind),
                                near ? fmt::format("did you mean {}?", *near) : "one of " + join(kinds, ", "))};
}

Result<int> run(const Options& options) {
  if (auto wrong = wrong_kind(options.kind)) { return tl::make_unexpected(Failure{{std::move(*wrong)}}); }
  ORRERY_TRY(data, data_directory());
  const api::Orrery orrery(data);
  ORRERY_TRY(entries, orrery.list(options.kind));
  std::vector<report::UnverifiedFigure> figures;
  if (options.unverified) {
    std::erase_if(entries, [](const auto& entry) { return entry.unverified == 0; });
    ORRERY_TRY(found, unverified_figures(orrery, entries));
    figures = std::move(found);
  }
  if (options.json) {
    print(report::listing_json(options.kind, entries, figures));
  } else if (options.names) {
    print(names_text(entries));
  } else if (options.unverified) {
    print(report::unverified_text(options.kind, entries, figures, terminal_style()));
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
  command.toggle({"--unverified", "", "only unverified figures, with what is said of them instead of a source", output},
                 [options](bool on) { options->unverified = on; });
  command.toggle({"--names", "", "only the names, one per line", output}, [options](bool on) { options->names = on; });
  command.toggle({"--json", "", "one JSON document (orrery.list/1), nothing else, on standard output", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
