#include "orrery/serving/prefix_cache.hpp"

#include "orrery/core/error.hpp"

namespace orrery::serving {

std::int64_t PrefixCache::hits(std::span<const std::uint32_t> blocks) const {
  std::int64_t count = 0;
  for (const std::uint32_t id : blocks) {
    if ((!is_local(id) && !is_stored(id)) || is_pending(id)) { break; }
    ++count;
  }
  return count;
}

std::int64_t PrefixCache::local_hits(std::span<const std::uint32_t> blocks) const {
  std::int64_t count = 0;
  for (const std::uint32_t id : blocks) {
    if (!is_local(id) || is_pending(id)) { break; }
    ++count;
  }
  return count;
}

std::int64_t PrefixCache::in_tier(std::span<const std::uint32_t> blocks, std::size_t tier) const {
  std::int64_t count = 0;
  const bool is_last = tier + 1 == sizes_.size();
  for (const std::uint32_t id : blocks) {
    const bool is_here = entries_[id].place == static_cast<std::int16_t>(tier + 1);
    count += is_here || (is_last && !is_local(id) && is_stored(id)) ? 1 : 0;
  }
  return count;
}

std::int64_t PrefixCache::held_among(std::span<const std::uint32_t> blocks) const {
  std::int64_t count = 0;
  for (const std::uint32_t id : blocks) { count += entries_[id].holders > 0 ? 1 : 0; }
  return count;
}

void PrefixCache::unlink(std::uint32_t id) {
  Entry& entry = entries_.at(id);
  Place& place = places_[static_cast<std::size_t>(entry.place)];
  (entry.previous == kNone ? place.first : entries_.at(entry.previous).next) = entry.next;
  (entry.next == kNone ? place.last : entries_.at(entry.next).previous) = entry.previous;
  entry.previous = entry.next = kNone;
  entry.place = kNowhere;
  --place.count;
}

void PrefixCache::append(std::uint32_t id, std::size_t to) {
  Entry& entry = entries_.at(id);
  Place& place = places_[to];
  entry.previous = place.last;
  entry.next = kNone;
  (place.last == kNone ? place.first : entries_.at(place.last).next) = id;
  place.last = id;
  entry.place = static_cast<std::int16_t>(to);
  ++place.count;
}

void PrefixCache::acquire(std::span<const std::uint32_t> blocks) {
  for (const std::uint32_t id : blocks) {
    Entry& entry = entries_.at(id);
    if (entry.holders == 0) {
      entry.is_computed = entry.is_computed && entry.place == 0;
      if (entry.place != kNowhere) { unlink(id); }
      entry.place = 0;
      ++held_;
    }
    ++entry.holders;
  }
}

void PrefixCache::set_computed(std::span<const std::uint32_t> blocks, bool is_computed) {
  for (const std::uint32_t id : blocks) {
    ORRERY_ASSERT(entries_[id].holders > 0);
    entries_.at(id).is_computed = is_computed;
  }
}

void PrefixCache::release(std::span<const std::uint32_t> blocks) {
  for (std::size_t i = blocks.size(); i-- > 0;) {
    Entry& entry = entries_.at(blocks[i]);
    ORRERY_ASSERT(entry.holders > 0);
    if (--entry.holders > 0) { continue; }
    --held_;
    if (entry.is_computed) {
      append(blocks[i], 0);
    } else {
      entry.place = kNowhere;
    }
  }
}

void PrefixCache::evict() {
  ORRERY_ASSERT(idle() > 0);
  std::uint32_t id = places_.front().first;
  unlink(id);
  for (std::size_t tier = 0; tier < sizes_.size(); ++tier) {
    if (sizes_[tier] <= 0) { continue; }
    append(id, tier + 1);
    if (places_[tier + 1].count <= sizes_[tier]) { return; }
    id = places_[tier + 1].first;
    unlink(id);
  }
}

void PrefixCache::clear() {
  ORRERY_ASSERT(held() == 0);
  for (Place& place : places_) {
    while (place.first != kNone) { unlink(place.first); }
  }
}

}  // namespace orrery::serving
