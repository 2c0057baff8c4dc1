// Blocks of prompts in a store that engines share. A block is written when its prompt has been computed, and stays
// until the store is full: the block that was written longest ago leaves first, and of one prompt the tail before the
// head. Reads and writes of all engines share the links of the store.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

class RemoteStore {
 public:
  // Block ids are below `ids`. `capacity`: blocks that fit; `block_time`: of its links, to read or write a block.
  RemoteStore(std::size_t ids, std::int64_t capacity, Ticks block_time = 0)
      : entries_(ids), capacity_(capacity), block_time_(block_time) {}

  [[nodiscard]] bool has(std::uint32_t id) const { return entries_[id].is_here; }
  // Writes the blocks of a prompt; those that are there already count as written now, and take no time.
  void write(std::span<const std::uint32_t> blocks, Ticks now);
  // When its links have sent so many blocks, after all that they have to send and take already.
  Ticks read(std::int64_t blocks, Ticks now);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] Ticks busy() const { return busy_; }  // of its links

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  struct Entry {
    std::uint32_t previous = kNone, next = kNone;  // in the order of writes
    bool is_here = false;
  };
  void remove(std::uint32_t id);
  void append(std::uint32_t id);

  std::vector<Entry> entries_;
  std::uint32_t first_ = kNone, last_ = kNone;
  std::int64_t count_ = 0, peak_ = 0, capacity_;
  Ticks block_time_, free_ = 0, busy_ = 0;  // free_: when its links are
};

}  // namespace orrery::serving
