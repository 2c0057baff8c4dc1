#include "orrery/hardware/astra_network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/foreign_file.hpp"
#include "orrery/hardware/topology.hpp"

namespace orrery::hardware {

using config::ForeignFile;
using config::Node;

namespace {

// Those that its files can say.
constexpr auto kTopologies = [] {
  std::array<std::string_view, kWiringNames.size() - 1> names;
  std::size_t count = 0;
  for (const WiringNames& row : kWiringNames) {
    if (row.wiring != Wiring::rails) { names[count++] = row.astra_sim; }
  }
  return names;
}();
Wiring wiring_of(std::string_view name) {
  const auto* const found = std::find_if(kWiringNames.begin(), kWiringNames.end(),
                                         [&](const WiringNames& row) { return row.astra_sim == name; });
  ORRERY_ASSERT(found != kWiringNames.end());
  return found->wiring;
}

void read_dimension(ForeignFile& file, AstraDimension& dimension, const Node& topology, const Node& count,
                    const Node& bandwidth, const Node& latency) {
  if (const auto which = file.choice(topology, "topology", kTopologies)) {
    dimension.wiring = wiring_of(kTopologies[*which]);
  }
  if (const auto ranks = file.real(count, "npus_count")) {
    if (*ranks < 2 || *ranks > static_cast<double>(kMostAstraRanks) || *ranks != std::trunc(*ranks)) {
      file.add_error(count.place, fmt::format("npus_count is {}; valid: a whole number of at least 2", count.scalar));
    } else {
      dimension.ranks = static_cast<std::uint32_t>(*ranks);
    }
  }
  if (const auto value = file.real(bandwidth, "bandwidth")) {
    if (!(*value > 0)) { file.add_error(bandwidth.place, fmt::format("bandwidth is {}; valid: above 0", *value)); }
    dimension.bytes_per_second = *value;
  }
  if (const auto value = file.real(latency, "latency")) {
    if (!(*value >= 0)) { file.add_error(latency.place, fmt::format("latency is {}; valid: at least 0", *value)); }
    dimension.latency_ns = *value;
  }
}

LinkClass link_of(const AstraDimension& dimension) {
  constexpr double kNanoseconds = 1e9;  // of a second
  LinkClass link;
  link.name = "astra-sim";
  link.latency = Seconds(dimension.latency_ns * links_to_peer(dimension.wiring) / kNanoseconds);
  Protocol& protocol = link.protocols.emplace_back();
  protocol.name = "Simple";
  protocol.ring_step = protocol.tree_step = link.latency;
  return link;
}

}  // namespace

std::string_view astra_name(Wiring wiring) {
  const auto* const found = std::find_if(kWiringNames.begin(), kWiringNames.end(),
                                         [&](const WiringNames& row) { return row.wiring == wiring; });
  ORRERY_ASSERT(found != kWiringNames.end());
  return found->astra_sim;
}

bool is_astra_network(const Node& file) {
  return file.kind == config::Kind::mapping && file.find("npus_count") != nullptr;
}

bool is_astra_network(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) { return false; }
  const auto text = config::read_text_file(path);
  if (!text) { return false; }
  const auto node = config::parse_yaml(*text, path);
  return node && is_astra_network(*node);
}

Result<std::vector<AstraDimension>> read_astra_network(const std::string& path, double unit,
                                                       std::vector<std::string>& warnings) {
  ORRERY_TRY(file, ForeignFile::open(path));
  const auto topology = file.list("topology", true);
  const auto count = file.list("npus_count", true);
  const auto bandwidth = file.list("bandwidth", true);
  const auto latency = file.list("latency", true);
  std::vector<AstraDimension> network;
  const std::size_t dimensions = topology.size();
  for (const auto& [name, items] :
       {std::pair{"npus_count", &count}, {"bandwidth", &bandwidth}, {"latency", &latency}}) {
    if (items->size() != dimensions && !items->empty() && dimensions > 0) {
      file.add_error(file.find(name)->place,
                     fmt::format("{} has {} entries, but topology has {}; each needs one per dimension", name,
                                 items->size(), dimensions));
    }
  }
  if (auto whole = file.finish(warnings); !whole) { return tl::make_unexpected(whole.error()); }
  network.resize(dimensions);
  std::uint64_t ranks = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    read_dimension(file, network[i], *topology[i], *count[i], *bandwidth[i], *latency[i]);
    network[i].bytes_per_second *= unit;
    ranks *= network[i].ranks;
    if (ranks > kMostAstraRanks) {
      file.add_error(count[i]->place,
                     fmt::format("npus_count: the product is above {} ranks, the maximum", kMostAstraRanks));
      break;
    }
  }
  std::vector<std::string> duplicates;  // warnings about keys are reported above
  if (auto whole = file.finish(duplicates); !whole) { return tl::make_unexpected(whole.error()); }
  return network;
}

TopologySpec topology_of(const std::vector<AstraDimension>& dimensions) {
  TopologySpec spec;
  spec.kind = TopologyKind::grid;
  spec.routing = Routing::shortest;
  for (const AstraDimension& dimension : dimensions) {
    spec.sizes.push_back(dimension.ranks);
    spec.wirings.push_back(dimension.wiring);
    spec.bandwidths.emplace_back(dimension.bytes_per_second);
    spec.axis_links.push_back(link_of(dimension));
  }
  spec.link = spec.axis_links.front();
  const auto is_first = [&](const LinkClass& link) { return link.latency == spec.link.latency; };
  if (std::all_of(spec.axis_links.begin(), spec.axis_links.end(), is_first)) { spec.axis_links.clear(); }
  spec.bandwidth = spec.bandwidths.front();
  return spec;
}

Result<TopologySpec> read_astra_topology(const std::string& path, std::vector<std::string>& warnings) {
  ORRERY_TRY(dimensions, read_astra_network(path, 1e9, warnings));
  TopologySpec spec = topology_of(dimensions);
  if (auto mistake = mistake_in(spec)) { return fail(Place{path, 0, 0, ""}, mistake->message); }
  return spec;
}

}  // namespace orrery::hardware
