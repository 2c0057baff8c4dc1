#include "orrery/hardware/reference.hpp"

#include <filesystem>
#include <string_view>
#include <utility>

#include "orrery/core/text.hpp"
#include "orrery/hardware/astra_network.hpp"
#include "orrery/hardware/citations.hpp"
#include "orrery/hardware/topology_records.hpp"

namespace orrery::hardware {
namespace {

namespace fs = std::filesystem;
using config::Kind;
using config::Node;

bool is_file_name(std::string_view reference) {
  return reference.ends_with(".yaml") || reference.ends_with(".yml") || reference.ends_with(".json");
}

// A relative path is relative to the file in which it is written.
std::string resolved_path(const std::string& reference, const Place& place) {
  if (!is_file_name(reference) || fs::path(reference).is_absolute()) { return reference; }
  return (fs::path(place.file).parent_path() / reference).string();
}

bool is_part_of(std::string_view figure, std::string_view member) {
  return figure.starts_with(member) && (figure.size() == member.size() || figure[member.size()] == '.');
}

// Removes the figures of `member` from the keys of `sources`.
void drop_citations(Node& sources, std::string_view member) {
  for (auto& cited : sources.members) {
    auto figures = cited_figures(cited.key);
    std::erase_if(figures, [&](const std::string& figure) { return is_part_of(figure, member); });
    cited.key = join(figures, ", ");
  }
  std::erase_if(sources.members, [](const config::Member& cited) { return cited.key.empty(); });
}

void change_member(Node& base, const config::Member& change) {
  if (Node* old = base.find(change.key)) {
    *old = change.value;
  } else {
    base.members.push_back(change);
  }
  Node* sources = base.find("sources");
  if (sources != nullptr && change.key != "sources") { drop_citations(*sources, change.key); }
}

}  // namespace

void name_node(Node& node, const std::string& name) {
  if (node.kind == Kind::mapping && node.find("name") == nullptr) {
    config::add(node, "name", config::text_node(name));
  }
}

void resolve_reference(Node& value, const EntryKind& kind, const std::string& data_directory, Unresolved& unresolved) {
  const Node* reference = value.kind == Kind::mapping ? value.find("use") : &value;
  if (reference == nullptr || reference->kind != Kind::text) { return; }
  const std::string target = resolved_path(reference->scalar, reference->place);
  auto base = entry_node(data_directory, kind, target, reference->place);
  if (!base) {
    auto& found = base.error().diagnostics;
    unresolved.complaints.insert(unresolved.complaints.end(), found.begin(), found.end());
    unresolved.places.push_back(value.place);
    return;
  }
  name_node(*base, file_stem(target));
  for (const auto& member : value.members) {
    if (member.key != "use") { change_member(*base, member); }
  }
  value = std::move(*base);
}

namespace {

// Printed trees have no places: errors in them are those of the reference.
void place_at(Node& node, const Place& place) {
  node.place = place;
  for (Node& item : node.items) { place_at(item, place); }
  for (config::Member& member : node.members) {
    member.line = place.line;
    member.column = place.column;
    place_at(member.value, place);
  }
}

Result<Node> network_file(const Node& reference) {
  const std::string file = resolved_path(reference.scalar, reference.place);
  if (!is_file_name(file)) {
    return fail(reference.place, quote(reference.scalar) +
                                     " is no file; valid: a network file of ASTRA-sim (network.yml), or a mapping with "
                                     "kind, bandwidth and link");
  }
  ORRERY_TRY(root, config::read_file(file));
  if (!is_astra_network(root)) {
    return fail(reference.place, quote(reference.scalar) +
                                     " has no npus_count; a topology is read from network files of ASTRA-sim only");
  }
  std::vector<std::string> warnings;  // keys that have no effect
  ORRERY_TRY(spec, read_astra_topology(file, warnings));
  Node made = config::Described<TopologySpec>::record().to_node(spec);
  place_at(made, reference.place);
  return made;
}

}  // namespace

void resolve_topology(Node& value, Unresolved& unresolved) {
  const Node* reference = value.kind == Kind::mapping ? value.find("use") : &value;
  if (reference == nullptr || reference->kind != Kind::text) { return; }
  auto base = network_file(*reference);
  if (!base) {
    auto& found = base.error().diagnostics;
    unresolved.complaints.insert(unresolved.complaints.end(), found.begin(), found.end());
    unresolved.places.push_back(value.place);
    return;
  }
  for (const auto& member : value.members) {
    if (member.key != "use") { change_member(*base, member); }
  }
  value = std::move(*base);
}

}  // namespace orrery::hardware
