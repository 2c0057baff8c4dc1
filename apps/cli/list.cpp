// `orrery list`: the entries of the catalogue.
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
#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/citations.hpp"
#include "orrery/report/json.hpp"
#include "orrery/report/table.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

namespace of_list {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery list models
  orrery list clusters --json
  orrery list accelerators --unverified
  orrery list --unverified                  # of all kinds

A figure is unverified if its stated source has not been checked; "orrery describe NAME" prints all sources, of an
engine "orrery describe engines/NAME".
The basis of a cluster is the weakest of its accelerator and links: figures that are measured, those of the same
generation, or priors.
)";

constexpr const char* kEveryKind = "entries";  // name of a listing of all kinds

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

// Every "sources" mapping of a description. The accelerator and the links of a cluster are separate entries.
void collect_unverified(const config::Node& node, const std::string& path, const std::string& entry,
                        std::vector<report::UnverifiedFigure>& figures) {
  for (const auto& member : node.members) {
    if (member.key == "accelerator" || member.key == "link") { continue; }
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

// Counts the figures of an entry that have a citation of their own.
void count_own(const config::Node& description, hardware::EntrySummary& entry) {
  const config::Node* sources = description.find("sources");
  if (sources == nullptr) { return; }
  hardware::Sources own;
  for (const auto& source : sources->members) { own[source.key] = source.value.scalar; }
  entry.figures = entry.unverified = 0;
  hardware::count_sources(own, entry);
}

// Removes entries without unverified figures of their own, and returns these figures.
Result<std::vector<report::UnverifiedFigure>> unverified_figures(const api::Orrery& orrery,
                                                                 std::vector<hardware::EntrySummary>& entries) {
  std::vector<report::UnverifiedFigure> figures;
  std::erase_if(entries, [](const auto& entry) { return entry.unverified == 0; });
  for (auto& entry : entries) {
    ORRERY_TRY(yaml, orrery.describe(entry.name));
    ORRERY_TRY(description, config::parse_yaml(yaml, entry.name));
    collect_unverified(description, "", entry.name, figures);
    count_own(description, entry);
  }
  std::erase_if(entries, [](const auto& entry) { return entry.unverified == 0; });
  return figures;
}

std::string rate_text(BytesPerSecond bandwidth) { return fmt::format("{:g} GB/s", bandwidth.value() / 1e9); }

// "nvlink 8 x 450 GB/s, infiniband 50 GB/s"; axes of a torus together: "torus 16 x 16, 90 GB/s".
std::string network_text(const std::vector<hardware::NetworkDimension>& dimensions) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto& dimension = dimensions[i];
    const auto count = [](std::int64_t size) { return size > 1 ? std::to_string(size) : std::string("any"); };
    if (hardware::has_neighbours_only(dimension.wiring)) {
      std::string shape = count(dimension.size);
      for (; i + 1 < dimensions.size() && hardware::has_neighbours_only(dimensions[i + 1].wiring); ++i) {
        shape += " x " + count(dimensions[i + 1].size);
      }
      parts.push_back(fmt::format("torus {}, {}", shape, rate_text(dimension.bandwidth)));
      continue;
    }
    const std::string size = dimension.size > 1 ? fmt::format("{} x ", dimension.size) : std::string();
    parts.push_back(fmt::format("{} {}{}", dimension.name, size, rate_text(dimension.bandwidth)));
  }
  return join(parts, ", ");
}

Result<std::string> clusters_text(const hardware::Catalogue& catalogue,
                                  const std::vector<hardware::EntrySummary>& entries) {
  report::Table table;
  using Align = report::Table::Align;
  table.column("name", Align::left).column("accelerator", Align::left).column("USD/h").column("basis", Align::left);
  table.column("network: size x bandwidth per device, innermost dimension first", Align::left);
  for (const auto& entry : entries) {
    if (entry.name.starts_with(hardware::kMadMaxPrefix)) {
      table.row({entry.name, "-", "-", "equations", entry.description});
      continue;
    }
    ORRERY_TRY(cluster, catalogue.cluster(entry.name, 0, hardware::UnlikeNodes::modelled));
    const double price = cluster.usd_per_device_hour;
    table.row({entry.name, cluster.accelerator.name, price > 0.0 ? fmt::format("{:.2f}", price) : "-",
               std::string(hardware::name_of(hardware::weakest_ground(cluster, hardware::Links::all).basis)),
               network_text(cluster.dimensions)});
  }
  return fmt::format(
      "{}\n{} clusters; USD/h: rental price of one device; \"orrery describe NAME\" prints all figures\n", table.text(),
      entries.size());
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
                    fmt::format("unknown kind {}; {}", quote(kind),
                                near ? fmt::format("did you mean {}?", *near) : "one of " + join(kinds, ", "))};
}

// Engines have the names of their stacks.
void add_engine_prefix(std::vector<hardware::EntrySummary>& entries) {
  for (auto& entry : entries) { entry.name.insert(0, api::kEnginePrefix); }
}

Result<std::vector<hardware::EntrySummary>> entries_of(const api::Orrery& orrery, const hardware::Catalogue& catalogue,
                                                       const std::string& kind) {
  if (kind == "links") { return catalogue.links(); }
  if (kind != kEveryKind) { return orrery.list(kind); }
  std::vector<hardware::EntrySummary> all;
  for (const auto& each : listed_kinds()) {
    ORRERY_TRY(entries, entries_of(orrery, catalogue, each));
    if (each == "engines") { add_engine_prefix(entries); }
    all.insert(all.end(), entries.begin(), entries.end());
  }
  return all;
}

Result<int> run(const Options& options) {
  const bool every = options.kind.empty() && options.unverified;
  const std::string kind = every ? kEveryKind : options.kind;
  if (auto wrong = wrong_kind(kind); wrong && !every) { return tl::make_unexpected(Failure{{std::move(*wrong)}}); }
  ORRERY_TRY(data, data_directory());
  const api::Orrery orrery(data);
  const hardware::Catalogue catalogue(data);
  ORRERY_TRY(entries, entries_of(orrery, catalogue, kind));
  std::vector<report::UnverifiedFigure> figures;
  if (options.unverified) {
    if (kind == "engines") { add_engine_prefix(entries); }
    ORRERY_TRY(found, unverified_figures(orrery, entries));
    figures = std::move(found);
  }
  if (options.json) {
    print(report::listing_json(kind, entries, figures));
  } else if (options.names) {
    print(names_text(entries));
  } else if (options.unverified) {
    print(report::unverified_text(kind, entries, figures, terminal_style()));
  } else if (kind == "clusters") {
    ORRERY_TRY(text, clusters_text(catalogue, entries));
    print(text);
  } else {
    print(report::listing_text(kind, entries));
  }
  return 0;
}

}  // namespace
}  // namespace of_list

const std::vector<std::string>& listed_kinds() {
  using namespace of_list;
  static const std::vector<std::string> kinds = {"models", "clusters", "accelerators", "links",
                                                 "stacks", "engines",  "algorithms"};
  return kinds;
}

Command list_command() {
  using namespace of_list;
  Command command("list", "List catalogue entries of one kind, and how many of their figures are unverified.");
  const auto options = std::make_shared<Options>();
  const std::string output(kOutputGroup);
  command.positional({"kind", "[KIND]", join(listed_kinds(), ", "), "", listed_kinds()},
                     [options](const std::string& kind) { options->kind = kind; });
  command.toggle(
      {"--unverified", "", "only unverified figures, with the reason; needs no KIND: all kinds without it", output},
      [options](bool on) { options->unverified = on; });
  command.toggle({"--names", "", "print only the names, one per line", output},
                 [options](bool on) { options->names = on; });
  command.toggle({"--json", "", "print one JSON document (orrery.list/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
