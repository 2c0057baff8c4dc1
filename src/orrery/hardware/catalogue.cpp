#include "orrery/hardware/catalogue.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/hardware/astra_network.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/hardware/reference.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/hardware/topology_records.hpp"

namespace orrery::hardware {
namespace {

using config::Described;
using config::Node;

constexpr std::array kKinds = {kClusterEntries, kAcceleratorEntries, kStackEntries, kLinkEntries};

template <class T>
Result<T> read_entry(const std::string& directory, const EntryKind& kind, const std::string& name_or_path) {
  ORRERY_TRY(node, entry_node(directory, kind, name_or_path));
  name_node(node, file_stem(name_or_path));
  return Described<T>::record().read(node);
}

// Nodes without an accelerator have that of the cluster; a cluster without one has that of its first nodes.
void complete_nodes(Node& cluster) {
  const Node* nodes = cluster.find("nodes");
  if (nodes == nullptr || nodes->kind != config::Kind::sequence || nodes->items.empty()) { return; }
  if (const Node* own = cluster.find("accelerator")) {
    const Node accelerator = *own;
    for (Node& some : cluster.find("nodes")->items) {
      const bool lacks_one = some.kind == config::Kind::mapping && some.find("accelerator") == nullptr;
      if (lacks_one) { config::add(some, "accelerator", accelerator); }
    }
  } else if (const Node* first = nodes->items.front().find("accelerator")) {
    Node accelerator = *first;  // adding a member may move the others
    config::add(cluster, "accelerator", std::move(accelerator));
  }
}

// Replaces references to the accelerator and the links in a cluster's tree. Returns the errors.
Unresolved resolve_parts(Node& cluster, const std::string& directory) {
  Unresolved unresolved;
  complete_nodes(cluster);
  if (Node* nodes = cluster.find("nodes")) {
    for (Node& some : nodes->items) {
      if (Node* one = some.find("accelerator")) { resolve_reference(*one, kAcceleratorEntries, directory, unresolved); }
    }
  }
  if (Node* accelerator = cluster.find("accelerator")) {
    resolve_reference(*accelerator, kAcceleratorEntries, directory, unresolved);
  }
  if (Node* dimensions = cluster.find("dimensions")) {
    for (Node& dimension : dimensions->items) {
      if (Node* link = dimension.find("link")) { resolve_reference(*link, kLinkEntries, directory, unresolved); }
    }
  }
  if (Node* topology = cluster.find("topology")) {
    resolve_topology(*topology, unresolved);
    if (Node* link = topology->find("link")) { resolve_reference(*link, kLinkEntries, directory, unresolved); }
    Node* domain = topology->find("scale_up");
    Node* link = domain != nullptr ? domain->find("link") : nullptr;
    if (link != nullptr) { resolve_reference(*link, kLinkEntries, directory, unresolved); }
    if (Node* links = topology->find("axis_links")) {
      for (Node& of_axis : links->items) { resolve_reference(of_axis, kLinkEntries, directory, unresolved); }
    }
  }
  return unresolved;
}

bool is_within(const Place& place, const Place& whole) {
  return place.file == whole.file && place.path.starts_with(whole.path) &&
         (place.path.size() == whole.path.size() || place.path[whole.path.size()] == '/');
}

bool is_within_one_of(const Place& place, const std::vector<Place>& wholes) {
  return std::any_of(wholes.begin(), wholes.end(), [&](const Place& whole) { return is_within(place, whole); });
}

bool reads_before(const Diagnostic& a, const Diagnostic& b) {
  return std::tie(a.place.file, a.place.line, a.place.column, a.place.path, a.message) <
         std::tie(b.place.file, b.place.line, b.place.column, b.place.path, b.message);
}

// Reads a resolved tree. Errors of the record at references that were not resolved are left out.
Result<Cluster> read_cluster(const Node& node, Unresolved unresolved) {
  auto cluster = Described<Cluster>::record().read(node);
  if (unresolved.complaints.empty()) { return cluster; }
  Failure failure{std::move(unresolved.complaints), false};
  if (!cluster) {
    std::vector<Diagnostic> more;
    for (auto& diagnostic : cluster.error().diagnostics) {
      if (!is_within_one_of(diagnostic.place, unresolved.places)) { more.push_back(std::move(diagnostic)); }
    }
    failure.diagnostics.insert(failure.diagnostics.end(), more.begin(), more.end());
    std::sort(failure.diagnostics.begin(), failure.diagnostics.end(), reads_before);
  }
  return tl::make_unexpected(std::move(failure));
}

// The dimensions of a cluster with a topology follow from it. Adds them to the tree, as if the file had them; returns
// them, because trees have no place for what only routes say.
Result<std::vector<NetworkDimension>> add_dimensions(Node& cluster, const Unresolved& unresolved) {
  const Node* topology = cluster.find("topology");
  if (topology == nullptr || !unresolved.complaints.empty()) { return {}; }
  if (const config::Member* dimensions = cluster.member("dimensions")) {
    return fail(dimensions->place(), "is not valid with topology, which defines the dimensions");
  }
  ORRERY_TRY(spec, Described<TopologySpec>::record().read(*topology));
  std::vector<NetworkDimension> dimensions = dimensions_of(spec, build(spec));
  Node made = config::sequence_node();
  for (const NetworkDimension& dimension : dimensions) {
    append(made, Described<NetworkDimension>::record().to_node(dimension));
  }
  const Place place = topology->place;  // adding a member may move the others
  config::add(cluster, "dimensions", std::move(made)).place = place;
  return dimensions;
}

std::int64_t product_of_sizes(const Cluster& cluster) {
  std::int64_t product = 1;
  for (const auto& dimension : cluster.dimensions) {
    const std::int64_t size = std::max<std::int64_t>(dimension.size, 1);
    if (size > kMaxDevices / product) { return kMaxDevices + 1; }
    product *= size;
  }
  return product;
}

// Errors of references, and those of the rest of the tree.
Result<Node> all_errors(const Node& node, Unresolved unresolved) {
  return tl::make_unexpected(read_cluster(node, std::move(unresolved)).error());
}

// A cluster of several kinds of nodes has as many devices as they have. `product`: of the sizes.
Result<Cluster> with_all_nodes(Cluster cluster, const Node& node, std::int64_t product) {
  std::int64_t count = 0;
  for (const Nodes& some : cluster.nodes) { count += some.count; }
  const std::int64_t size = std::max<std::int64_t>(cluster.node_size(), 1);
  const std::int64_t devices = count > kMaxDevices / size ? kMaxDevices + 1 : count * size;
  const std::int64_t stated = cluster.devices != 0 ? cluster.devices : product;
  const bool grows = cluster.dimensions.back().size == 0;
  if (devices != stated && (cluster.devices != 0 || !grows)) {
    return fail(node.find("nodes")->place,
                fmt::format("{} nodes of {} are {} devices; the cluster has {}", count, size, devices, stated));
  }
  auto whole = scaled(std::move(cluster), devices);
  if (!whole) { return fail(node.find("nodes")->place, whole.error().diagnostics.front().message); }
  return whole;
}

// The cluster as its file states it: sizes and number of devices made to agree.
Result<Cluster> with_own_devices(Cluster cluster, const Node& node) {
  const std::int64_t product = product_of_sizes(cluster);
  if (product > kMaxDevices) {
    return fail(config::place_below(node, "/dimensions"),
                fmt::format("the product of the dimensions' sizes is above {} devices", kMaxDevices));
  }
  const bool grows = cluster.dimensions.back().size == 0;
  if (!cluster.nodes.empty()) { return with_all_nodes(std::move(cluster), node, product); }
  if (cluster.devices == 0) {
    if (grows) { cluster.dimensions.back().size = 1; }
    cluster.devices = product;
    return cluster;
  }
  const Place place = node.find("devices")->place;
  if (!grows && cluster.devices != product) {
    return fail(place,
                fmt::format("{} devices, but the product of the dimensions' sizes is {}", cluster.devices, product));
  }
  const std::int64_t devices = cluster.devices;
  auto whole = scaled(std::move(cluster), devices);
  if (!whole) { return fail(place, whole.error().diagnostics.front().message); }
  return whole;
}

// A cluster that grows has neither a size of its outermost dimension nor a number of devices in its description, which
// can so be the start of a file for any number of devices.
Result<Cluster> as_written(Result<Cluster> cluster) {
  const bool grows =
      cluster && !cluster->topology && cluster->dimensions.size() > 1 && cluster->dimensions.back().most == 0;
  if (grows) { cluster->dimensions.back().size = cluster->devices = 0; }
  return cluster;
}

template <class T>
Result<std::string> printed(const Result<T>& entry) {
  return entry.map([](const T& value) { return Described<T>::record().print_yaml(value); });
}

// The kind of entry that a file describes, from a key that only that kind has.
std::string_view kind_of_file(const Node& node) {
  if (node.find("dimensions") != nullptr || node.find("topology") != nullptr) { return kClusterEntries.folder; }
  if (node.find("matrix_peak") != nullptr) { return kAcceleratorEntries.folder; }
  if (node.find("protocols") != nullptr) { return kLinkEntries.folder; }
  return kStackEntries.folder;
}

template <class Load>
Result<std::vector<EntrySummary>> listing(const std::string& directory, const EntryKind& kind, Load&& load) {
  std::vector<EntrySummary> summaries;
  for (const auto& name : entry_names(directory, kind)) {
    const auto entry = load(name);
    if (!entry) { return tl::make_unexpected(entry.error()); }
    summaries.push_back({entry->name, entry->description, 0, 0});
    count_sources(entry->sources, summaries.back());
  }
  return summaries;
}

}  // namespace

Result<Accelerator> Catalogue::accelerator(const std::string& name_or_path) const {
  return read_entry<Accelerator>(directory_, kAcceleratorEntries, name_or_path);
}

Result<LinkClass> Catalogue::link(const std::string& name_or_path) const {
  return read_entry<LinkClass>(directory_, kLinkEntries, name_or_path);
}

Result<Stack> Catalogue::stack(const std::string& name_or_path) const {
  return read_entry<Stack>(directory_, kStackEntries, name_or_path);
}

Result<Stack> Catalogue::stack_on(const std::string& name_or_path, const Accelerator& accelerator) const {
  ORRERY_TRY(named, stack(name_or_path));
  const auto other = named.instead_on.find(accelerator.maker);
  if (other == named.instead_on.end()) { return named; }
  return stack(other->second);
}

std::optional<std::string> Catalogue::clusters_of(const std::string& name) const {
  if (!has_entry(directory_, kAcceleratorEntries, name)) { return std::nullopt; }
  if (has_entry(directory_, kClusterEntries, name)) { return std::nullopt; }
  std::vector<std::string> found;
  for (const auto& one : entry_names(directory_, kClusterEntries)) {
    const auto read = cluster(one, 0, UnlikeNodes::modelled);
    if (read && read->accelerator.name == name) { found.push_back(one); }
  }
  return fmt::format("{} is an accelerator, not a cluster; {}", quote(name),
                     found.empty() ? std::string("no cluster of the catalogue has it: docs/guide/my-hardware.md")
                                   : "clusters with it: " + join(found, ", "));
}

Result<config::Node> Catalogue::cluster_tree(const std::string& name_or_path, const Place& place) const {
  if (has_entry(directory_, kMadMaxSystems, name_or_path)) {
    return fail(place,
                fmt::format("{} has only the figures that MAD-Max's equations use; valid with --semantics mad-max",
                            quote(name_or_path)));
  }
  if (auto clusters = clusters_of(name_or_path)) { return fail(place, std::move(*clusters)); }
  ORRERY_TRY(node, entry_node(directory_, kClusterEntries, name_or_path, place));
  if (is_astra_network(node)) {
    return fail(place, fmt::format("{} is a network file of ASTRA-sim and has no accelerator; valid here: a cluster "
                                   "file with an accelerator and \"topology: {}\"",
                                   quote(name_or_path), std::filesystem::path(name_or_path).filename().string()));
  }
  name_node(node, file_stem(name_or_path));
  auto unresolved = resolve_parts(node, directory_);
  if (!unresolved.complaints.empty()) { return all_errors(node, std::move(unresolved)); }
  return node;
}

Result<Cluster> Catalogue::cluster(const std::string& name_or_path, std::int64_t devices, UnlikeNodes unlike) const {
  ORRERY_TRY(node, cluster_tree(name_or_path));
  return cluster_of_tree(std::move(node), devices, unlike);
}

Result<Cluster> Catalogue::cluster_of_tree(config::Node node, std::int64_t devices, UnlikeNodes unlike) const {
  auto unresolved = resolve_parts(node, directory_);
  ORRERY_TRY(made, add_dimensions(node, unresolved));
  ORRERY_TRY(read, read_cluster(node, std::move(unresolved)));
  for (std::size_t i = 0; i < made.size(); ++i) {
    read.dimensions[i].parts = std::move(made[i].parts);
    read.dimensions[i].route_latency = made[i].route_latency;
  }
  if (!read.nodes.empty()) { read.accelerator = read.nodes.front().accelerator; }
  read.change_accelerators([&](Accelerator& one) {
    if (one.name.empty()) { one.name = read.name; }
  });
  for (auto& dimension : read.dimensions) {
    if (dimension.link.name.empty()) { dimension.link.name = dimension.name; }
  }
  // The size of the outermost dimension is a limit; a cluster with one dimension has no other.
  NetworkDimension& outermost = read.dimensions.back();
  if (outermost.most == 0 && read.dimensions.size() > 1) { outermost.most = outermost.size; }
  ORRERY_TRY(sized, devices != 0 ? scaled(std::move(read), devices) : with_own_devices(std::move(read), node));
  if (!unlike.refused_by.empty() && !sized.nodes.empty()) {
    return fail(node.find("nodes")->place,
                fmt::format("{} does not model several kinds of nodes; give a cluster of one kind", unlike.refused_by));
  }
  return sized;
}

Result<Cluster> Catalogue::network(const std::string& name_or_path, std::int64_t devices) const {
  if (!is_astra_network(name_or_path)) { return cluster(name_or_path, devices, UnlikeNodes::modelled); }
  std::vector<std::string> warnings;
  ORRERY_TRY(spec, read_astra_topology(name_or_path, warnings));
  Cluster network;
  network.name = file_stem(name_or_path);
  network.dimensions = dimensions_of(spec, build(spec));
  network.topology = std::move(spec);
  NetworkDimension& outermost = network.dimensions.back();
  outermost.most = network.dimensions.size() > 1 ? outermost.size : 0;
  const std::int64_t all = product_of_sizes(network);
  ORRERY_TRY(sized, scaled(std::move(network), devices != 0 ? devices : all));
  sized.warnings.insert(sized.warnings.begin(), warnings.begin(), warnings.end());
  return sized;
}

Result<Cluster> Catalogue::cluster_template(const std::string& name_or_path, UnlikeNodes unlike) const {
  return as_written(cluster(name_or_path, 0, unlike));
}

// Without the dimensions that follow from a topology.
std::string yaml_of(const Cluster& cluster) {
  Node node = Described<Cluster>::record().to_node(cluster);
  if (cluster.topology) {
    std::erase_if(node.members, [](const auto& member) { return member.key == "dimensions"; });
  }
  return config::print_yaml(node);
}
std::string yaml_of(const Stack& stack) { return Described<Stack>::record().print_yaml(stack); }

Result<std::vector<EntrySummary>> Catalogue::accelerators() const {
  return listing(directory_, kAcceleratorEntries, [this](const std::string& name) { return accelerator(name); });
}

Result<std::vector<EntrySummary>> Catalogue::links() const {
  return listing(directory_, kLinkEntries, [this](const std::string& name) { return link(name); });
}

Result<std::vector<EntrySummary>> Catalogue::stacks() const {
  return listing(directory_, kStackEntries, [this](const std::string& name) { return stack(name); });
}

// A cluster's figures are its own and those of its accelerator and link classes.
Result<std::vector<EntrySummary>> Catalogue::clusters() const {
  std::vector<EntrySummary> summaries;
  for (const auto& name : entry_names(directory_, kClusterEntries)) {
    ORRERY_TRY(entry, cluster(name, 0, UnlikeNodes::modelled));
    summaries.push_back({entry.name, entry.description, 0, 0});
    count_sources(entry.sources, summaries.back());
    count_sources(entry.accelerator.sources, summaries.back());
    for (const Nodes& some : entry.nodes) { count_sources(some.accelerator.sources, summaries.back()); }
    std::set<std::string> counted;
    for (const auto& dimension : entry.dimensions) {
      if (counted.insert(dimension.link.name).second) { count_sources(dimension.link.sources, summaries.back()); }
    }
  }
  return summaries;
}

Result<std::string> Catalogue::description(const std::string& name_or_path, std::vector<std::string> others) const {
  std::string_view folder;
  for (const auto& kind : kKinds) {
    const auto known = entry_names(directory_, kind);
    if (folder.empty() && std::binary_search(known.begin(), known.end(), name_or_path)) { folder = kind.folder; }
  }
  if (folder.empty()) {
    auto all = names();
    all.insert(all.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
    const bool is_file = entry_file(directory_, kClusterEntries, name_or_path).has_value();
    if (!is_file) {
      return fail(fmt::format("no catalogue entry {}{}", quote(name_or_path), did_you_mean(name_or_path, all)));
    }
    ORRERY_TRY(node, entry_node(directory_, kClusterEntries, name_or_path));
    folder = kind_of_file(node);
  }
  if (folder == kClusterEntries.folder) {
    return cluster_template(name_or_path, UnlikeNodes::modelled).map([](const Cluster& cluster) {
      return yaml_of(cluster);
    });
  }
  if (folder == kAcceleratorEntries.folder) { return printed(accelerator(name_or_path)); }
  if (folder == kLinkEntries.folder) { return printed(link(name_or_path)); }
  return printed(stack(name_or_path));
}

std::vector<std::string> Catalogue::names() const {
  std::vector<std::string> all;
  for (const auto& kind : kKinds) {
    const auto names = entry_names(directory_, kind);
    all.insert(all.end(), names.begin(), names.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace orrery::hardware
