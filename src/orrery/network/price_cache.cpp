#include "orrery/network/price_cache.hpp"

#include <bit>
#include <cstdint>

namespace orrery::network {

namespace {

std::uint64_t hash_of(Collective collective, Bytes bytes, const Group& group) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  auto hash = std::bit_cast<std::uint64_t>(bytes.value()) ^ static_cast<std::uint64_t>(collective);
  for (const Extent& extent : group.extents) {
    hash = (hash * kOdd) ^ (hash >> 32U) ^ static_cast<std::uint64_t>(extent.members << 3 | extent.dimension);
  }
  hash *= kOdd;
  return hash ^ (hash >> 32U);
}

}  // namespace

Seconds PriceCache::time(Collective collective, Bytes bytes, const Group& group) {
  if (group.extents.empty()) { return Seconds(0); }
  const std::uint64_t hash = hash_of(collective, bytes, group);
  const auto slot = [&]() -> Entry& { return entries_[hash & (entries_.size() - 1)]; };
  const Entry& found = slot();
  if (found.bytes == bytes && found.collective == collective && found.group == group) { return found.time; }
  if (++misses_ > entries_.size()) { grow(); }
  slot() = {collective, bytes, group, fabric_.price(collective, bytes, group).time};
  return slot().time;
}

void PriceCache::grow() {
  misses_ = 0;
  if (entries_.size() >= kMostSlots) { return; }
  entries_.assign(4 * entries_.size(), Entry{});
}

}  // namespace orrery::network
