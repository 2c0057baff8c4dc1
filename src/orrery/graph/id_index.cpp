#include "orrery/graph/id_index.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace orrery::graph {

namespace {

constexpr NodeIndex kEmpty = std::numeric_limits<NodeIndex>::max();

// The maximum number of slots of a dense table per node.
constexpr std::uint64_t kMostSlots = 4;

bool are_consecutive(std::span<const std::uint64_t> ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != ids[0] + i) { return false; }
  }
  return true;
}

}  // namespace

IdIndex::IdIndex(std::span<const std::uint64_t> ids) {
  if (ids.empty()) { return; }
  first_ = ids[0];
  if (are_consecutive(ids)) { return; }
  const auto [smallest, largest] = std::minmax_element(ids.begin(), ids.end());
  first_ = *smallest;
  const std::uint64_t range = *largest - *smallest;
  if (range / kMostSlots < ids.size()) {
    fill_dense(ids, range);
  } else {
    fill_hashed(ids);
  }
}

void IdIndex::fill_dense(std::span<const std::uint64_t> ids, std::uint64_t range) {
  storage_ = Storage::dense;
  table_.assign(static_cast<std::size_t>(range) + 1, kEmpty);
  for (std::size_t i = ids.size(); i-- > 0;) { table_[ids[i] - first_] = static_cast<NodeIndex>(i); }
}

void IdIndex::fill_hashed(std::span<const std::uint64_t> ids) {
  storage_ = Storage::hashed;
  const std::size_t slots = std::bit_ceil(ids.size() * 2);
  shift_ = 64 - std::countr_zero(slots);
  table_.assign(slots, kEmpty);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::size_t at = slot(ids[i]);
    while (table_[at] != kEmpty && ids[table_[at]] != ids[i]) { at = (at + 1) % slots; }
    if (table_[at] == kEmpty) { table_[at] = static_cast<NodeIndex>(i); }
  }
}

std::size_t IdIndex::slot(std::uint64_t id) const {
  id ^= id >> 32;
  return static_cast<std::size_t>((id * 0x9E3779B97F4A7C15U) >> shift_);
}

std::optional<NodeIndex> IdIndex::find_in_table(std::uint64_t id, std::span<const std::uint64_t> ids) const {
  if (storage_ == Storage::dense) {
    const std::uint64_t place = id - first_;
    if (place >= table_.size() || table_[place] == kEmpty) { return std::nullopt; }
    return table_[place];
  }
  std::size_t at = slot(id);
  while (table_[at] != kEmpty && ids[table_[at]] != id) { at = (at + 1) % table_.size(); }
  if (table_[at] == kEmpty) { return std::nullopt; }
  return table_[at];
}

}  // namespace orrery::graph
