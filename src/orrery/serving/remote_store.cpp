#include "orrery/serving/remote_store.hpp"

#include <algorithm>

namespace orrery::serving {

void RemoteStore::remove(std::uint32_t id) {
  Entry& entry = entries_[id];
  (entry.previous == kNone ? first_ : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? last_ : entries_[entry.next].previous) = entry.previous;
  entry = {};
  --count_;
}

void RemoteStore::append(std::uint32_t id) {
  Entry& entry = entries_[id];
  entry.previous = last_;
  entry.is_here = true;
  (last_ == kNone ? first_ : entries_[last_].next) = id;
  last_ = id;
  ++count_;
}

Ticks RemoteStore::read(std::int64_t blocks, Ticks now) {
  const Ticks time = saturated_product(blocks, block_time_);
  free_ = saturated_sum(std::max(free_, now), time);
  busy_ = saturated_sum(busy_, time);
  return free_;
}

void RemoteStore::write(std::span<const std::uint32_t> blocks, Ticks now) {
  if (capacity_ <= 0) { return; }
  std::int64_t written = 0;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    ++written;
    if (has(blocks[i])) {
      remove(blocks[i]);
      --written;
    }
    if (count_ == capacity_) { remove(first_); }
    append(blocks[i]);
  }
  read(written, now);  // a write takes as long
  peak_ = std::max(peak_, count_);
}

}  // namespace orrery::serving
