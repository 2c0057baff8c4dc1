#include "orrery/simulate/read_inputs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/foreign_file.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/astra_network.hpp"

namespace orrery::simulate {

using config::ForeignFile;
using config::Kind;
using config::Node;

namespace {

constexpr std::uint64_t kMaxRanks = hardware::kMostAstraRanks;

constexpr std::array<std::string_view, 4> kArrangements = {"NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION",
                                                           "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL"};

// The unit of `bandwidth`: ASTRA-sim calls 2^30 bytes per second one GB/s.
double bandwidth_unit(Semantics semantics) {
  switch (semantics) {
    case Semantics::astra_sim: return static_cast<double>(1U << 30U);
    case Semantics::physical: return 1e9;
  }
  return 1e9;
}

Group read_group(const config::Member& member, std::uint32_t ranks, Failure& failure) {
  Group group{group_key(member.key), {}};
  const auto add_error = [&](const Place& place, std::string message) {
    failure.diagnostics.push_back({place, std::move(message)});
  };
  if (member.value.kind != Kind::sequence || member.value.items.empty()) {
    add_error(member.value.place, fmt::format("group {} is not a list of ranks", member.key));
  }
  std::unordered_set<std::uint64_t> listed;
  for (const Node& item : member.value.items) {
    const auto rank = item.kind == Kind::integer ? whole_number(item.scalar) : std::nullopt;
    if (!rank || *rank >= ranks) {
      add_error(item.place, fmt::format("group {} lists {}; the {} ranks are 0 to {}", member.key, quote(item.scalar),
                                        ranks, ranks - 1));
    } else if (!listed.insert(*rank).second) {
      add_error(item.place, fmt::format("group {} lists rank {} twice", member.key, *rank));
    } else {
      group.ranks.push_back(static_cast<std::uint32_t>(*rank));
    }
  }
  return group;
}

}  // namespace

std::string_view name_of(Wiring wiring) { return hardware::astra_name(wiring); }

std::uint32_t Network::ranks() const {
  std::uint32_t product = 1;
  for (const NetworkDimension& dimension : dimensions) { product *= dimension.ranks; }
  return product;
}

Result<Network> read_network(const std::string& path, Semantics semantics, Warnings& warnings) {
  ORRERY_TRY(dimensions, hardware::read_astra_network(path, bandwidth_unit(semantics), warnings));
  return Network{std::move(dimensions)};
}

Result<memory::Expansion> read_memory(const std::string& path, Warnings& warnings) {
  ORRERY_TRY(file, ForeignFile::open(path));
  memory::Expansion expansion;
  if (file.root().find("memory-type") == nullptr) { file.missing("memory-type"); }
  if (const auto which = file.choice("memory-type", kArrangements)) {
    expansion.arrangement = static_cast<memory::Arrangement>(*which);
  }
  const bool has_memory = expansion.arrangement != memory::Arrangement::NO_MEMORY_EXPANSION;
  const auto latency = file.whole("remote-mem-latency");
  const auto bandwidth = file.whole("remote-mem-bw", has_memory ? 1 : 0);
  const auto nodes = file.whole("num-nodes", 1);
  const auto per_node = file.whole("num-npus-per-node", 1, kMaxRanks);
  if (has_memory && file.root().find("remote-mem-latency") == nullptr) { file.missing("remote-mem-latency"); }
  if (has_memory && file.root().find("remote-mem-bw") == nullptr) { file.missing("remote-mem-bw"); }
  if (expansion.arrangement == memory::Arrangement::PER_NODE_MEMORY_EXPANSION) {
    if (file.root().find("num-nodes") == nullptr) { file.missing("num-nodes"); }
    if (file.root().find("num-npus-per-node") == nullptr) { file.missing("num-npus-per-node"); }
  }
  (void)nodes;  // the number of nodes follows from the ranks
  if (auto whole = file.finish(warnings); !whole) { return tl::make_unexpected(whole.error()); }
  expansion.latency_ns = latency.value_or(0);
  expansion.bytes_per_ns = bandwidth.value_or(0);
  expansion.ranks_per_node = static_cast<std::uint32_t>(per_node.value_or(1));
  return expansion;
}

Result<std::vector<Group>> read_groups(const std::string& path, std::uint32_t ranks) {
  ORRERY_TRY(root, config::read_file(path));
  if (root.kind != Kind::mapping) {
    return fail(root.place, "is not a mapping of group names to ranks, such as {\"1\": [0, 1]}");
  }
  std::vector<Group> groups;
  Failure failure;
  std::unordered_set<std::string> names;
  for (const config::Member& member : root.members) {
    groups.push_back(read_group(member, ranks, failure));
    if (names.insert(groups.back().name).second) { continue; }
    failure.diagnostics.push_back({member.place(), fmt::format("group {} is listed twice", groups.back().name)});
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return groups;
}

}  // namespace orrery::simulate
