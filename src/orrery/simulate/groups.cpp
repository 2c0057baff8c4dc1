// Process groups by name.
#include <algorithm>
#include <charconv>
#include <utility>

#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

std::string group_key(std::string_view name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  return is_number ? std::to_string(number) : std::string(name);
}

GroupIndex::GroupIndex(const std::vector<Group>& groups) : groups_(&groups), ascending_(groups.size()) {
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    by_name_.try_emplace(groups[i].name, i);
    const std::vector<std::uint32_t>& ranks = groups[i].ranks;
    if (std::is_sorted(ranks.begin(), ranks.end())) { continue; }
    ascending_[i] = ranks;
    std::sort(ascending_[i].begin(), ascending_[i].end());
  }
}

GroupIndex::GroupIndex(std::vector<Sized> groups) : sized_(std::move(groups)) {
  for (std::uint32_t i = 0; i < sized_.size(); ++i) { by_name_.try_emplace(sized_[i].name, i); }
}

std::optional<std::uint32_t> GroupIndex::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

bool GroupIndex::contains(std::uint32_t group, std::uint32_t rank) const {
  if (groups_ == nullptr) { return true; }
  const std::vector<std::uint32_t>& ranks = ascending_[group].empty() ? (*groups_)[group].ranks : ascending_[group];
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

std::uint32_t GroupIndex::size(std::uint32_t group) const {
  return groups_ == nullptr ? sized_[group].size : static_cast<std::uint32_t>((*groups_)[group].ranks.size());
}

std::vector<std::string> GroupIndex::names() const {
  std::vector<std::string> names;
  for (const Sized& group : sized_) { names.push_back(group.name); }
  if (groups_ == nullptr) { return names; }
  for (const Group& group : *groups_) { names.push_back(group.name); }
  return names;
}

}  // namespace orrery::simulate
