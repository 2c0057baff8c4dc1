#include "orrery/serving/prefix_cache.hpp"

#include "orrery/core/error.hpp"

namespace orrery::serving {

std::int64_t PrefixCache::hits(std::span<const std::uint32_t> blocks) const {
  std::int64_t count = 0;
  for (const std::uint32_t id : blocks) {
    if (!entries_[id].cached) { break; }
    ++count;
  }
  return count;
}

std::int64_t PrefixCache::idle_among(std::span<const std::uint32_t> blocks) const {
  std::int64_t count = 0;
  for (const std::uint32_t id : blocks) { count += entries_[id].cached && entries_[id].holders == 0 ? 1 : 0; }
  return count;
}

std::int64_t PrefixCache::held_among(std::span<const std::uint32_t> blocks) const {
  std::int64_t count = 0;
  for (const std::uint32_t id : blocks) { count += entries_[id].holders > 0 ? 1 : 0; }
  return count;
}

void PrefixCache::unlink(std::uint32_t id) {
  Entry& entry = entries_[id];
  (entry.previous == kNone ? first_ : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? last_ : entries_[entry.next].previous) = entry.previous;
  entry.previous = entry.next = kNone;
  --idle_;
}

void PrefixCache::append(std::uint32_t id) {
  Entry& entry = entries_[id];
  entry.previous = last_;
  entry.next = kNone;
  (last_ == kNone ? first_ : entries_[last_].next) = id;
  last_ = id;
  ++idle_;
}

void PrefixCache::acquire(std::span<const std::uint32_t> blocks) {
  for (const std::uint32_t id : blocks) {
    Entry& entry = entries_[id];
    if (entry.cached && entry.holders == 0) { unlink(id); }
    if (entry.holders == 0) { ++held_; }
    entry.cached = true;
    ++entry.holders;
  }
}

void PrefixCache::release(std::span<const std::uint32_t> blocks) {
  for (std::size_t i = blocks.size(); i-- > 0;) {
    Entry& entry = entries_[blocks[i]];
    ORRERY_ASSERT(entry.holders > 0);
    if (--entry.holders > 0) { continue; }
    --held_;
    append(blocks[i]);
  }
}

void PrefixCache::evict() {
  ORRERY_ASSERT(first_ != kNone);
  const std::uint32_t id = first_;
  unlink(id);
  entries_[id].cached = false;
}

}  // namespace orrery::serving
