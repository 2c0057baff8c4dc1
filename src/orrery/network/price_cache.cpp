#include "orrery/network/price_cache.hpp"

#include <bit>
#include <cstdint>
#include <utility>

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

PriceCache::Entry& PriceCache::entry(Collective collective, Bytes bytes, const Group& group) {
  const std::uint64_t hash = hash_of(collective, bytes, group);
  const auto slot = [&]() -> Entry& { return entries_[hash & (entries_.size() - 1)]; };
  Entry& found = slot();
  if (found.bytes == bytes && found.collective == collective && found.group == group) { return found; }
  if (++misses_ > entries_.size()) { grow(); }
  Entry& made = slot();
  made.collective = collective;
  made.bytes = bytes;
  made.group = group;
  made.known = Known::nothing;
  return made;
}

Seconds PriceCache::time(Collective collective, Bytes bytes, const Group& group) {
  if (group.extents.empty()) { return Seconds(0); }
  Entry& found = entry(collective, bytes, group);
  if (found.known == Known::nothing) {
    found.time = fabric_.price(collective, bytes, group).time;
    found.known = Known::time;
  }
  return found.time;
}

const CallLoads& PriceCache::loads(Collective collective, Bytes bytes, const Group& group) {
  Entry& found = entry(collective, bytes, group);
  if (loads_.size() != entries_.size()) { loads_.assign(entries_.size(), CallLoads{}); }
  CallLoads& loads = loads_[static_cast<std::size_t>(&found - entries_.data())];
  if (found.known == Known::loads) { return loads; }
  Traffic traffic = fabric_.traffic(collective, bytes, group);
  if (auto tree = fabric_.tree_traffic(collective, bytes, group, traffic.price.time)) { traffic = std::move(*tree); }
  found.time = loads.time = traffic.price.time;
  loads.ports.clear();
  for (const PortLoad& port : traffic.ports) { loads.ports.push_back({port.dimension, max(port.out, port.in)}); }
  found.known = Known::loads;
  return loads;
}

void PriceCache::grow() {
  misses_ = 0;
  if (entries_.size() >= kMostSlots) { return; }
  entries_.assign(4 * entries_.size(), Entry{});
}

}  // namespace orrery::network
