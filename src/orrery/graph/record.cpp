#include "orrery/graph/record.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace orrery::graph {

namespace {

constexpr std::array<std::string_view, 8> kNodeTypes = {
    "INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
    "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE",
};

constexpr std::array<std::string_view, 10> kCollectiveTypes = {
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER",  "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER",
};

std::string_view name_at(std::span<const std::string_view> names, std::int32_t number) {
  return number >= 0 && static_cast<std::size_t>(number) < names.size() ? names[static_cast<std::size_t>(number)]
                                                                        : "UNKNOWN";
}

template <class Enum>
std::optional<Enum> enumerator(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) { return std::nullopt; }
  return static_cast<Enum>(found - names.begin());
}

const Attribute* first(const std::vector<Attribute>& attributes, std::string_view key) {
  const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const auto& a) { return a.name == key; });
  return found == attributes.end() ? nullptr : &*found;
}

// Every element of a list as a rank; nothing if one of them is not a rank.
std::optional<std::vector<std::uint64_t>> ranks_of(const Value& value) {
  if (!is_list(value.type()) || is_text(value.type())) { return std::nullopt; }
  std::vector<std::uint64_t> ranks(value.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = value.as_uint(i);
    if (!rank) { return std::nullopt; }
    ranks[i] = *rank;
  }
  return ranks;
}

}  // namespace

std::string_view name_of(NodeType type) { return name_at(kNodeTypes, static_cast<std::int32_t>(type)); }
std::string_view name_of(CollectiveType type) { return name_at(kCollectiveTypes, static_cast<std::int32_t>(type)); }

std::optional<NodeType> node_type(std::string_view name) { return enumerator<NodeType>(kNodeTypes, name); }
std::optional<CollectiveType> collective_type(std::string_view name) {
  return enumerator<CollectiveType>(kCollectiveTypes, name);
}

bool is_known(NodeType type) { return name_of(type) != "UNKNOWN"; }
bool is_known(CollectiveType type) { return name_of(type) != "UNKNOWN"; }

const Attribute* NodeRecord::find(std::string_view key) const { return first(attributes, key); }
const Attribute* Metadata::find(std::string_view key) const { return first(attributes, key); }

std::vector<ProcessGroup> process_groups(const Metadata& metadata) {
  std::vector<ProcessGroup> groups;
  for (const Attribute& attribute : metadata.attributes) {
    if (!attribute.name.starts_with(keys::process_group_prefix)) { continue; }
    auto ranks = ranks_of(attribute.value);
    if (!ranks) { continue; }
    groups.push_back({std::string(attribute.name.substr(keys::process_group_prefix.size())), std::move(*ranks)});
  }
  return groups;
}

}  // namespace orrery::graph
