// Blocks of prompts in a store that engines share. A block is written when its prompt has been computed, and stays
// until the store is full: the block that was written longest ago leaves first, and of one prompt the tail before the
// head. Left out: the time of writes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace orrery::serving {

class RemoteStore {
 public:
  // Block ids are below `ids`. `capacity`: blocks that fit.
  RemoteStore(std::size_t ids, std::int64_t capacity) : entries_(ids), capacity_(capacity) {}

  [[nodiscard]] bool has(std::uint32_t id) const { return entries_[id].is_here; }
  // Writes the blocks of a prompt; those that are there already count as written now.
  void write(std::span<const std::uint32_t> blocks);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }

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
};

}  // namespace orrery::serving
