// The iteration order of a hash table with chained buckets. ASTRA-sim issues the steps of a custom collective in this
// order, so it is part of its semantics. There is one list for all buckets. A number is inserted in front of those of
// its bucket or, if there are none, at the front of the list. The number of buckets grows along a sequence of primes;
// then all numbers are inserted again, from the front.
//
// Private to the room.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace orrery::simulate {

class HashOrder {
 public:
  void insert(std::uint64_t number, std::uint32_t value) {
    if (count_ + 1 > buckets_) { grow(); }
    cells_.push_back({number, value, kEnd});
    place(static_cast<std::uint32_t>(cells_.size() - 1));
    ++count_;
  }

  // The number must be in the table.
  void erase(std::uint64_t number) {
    const std::size_t bucket = number % buckets_;
    std::uint32_t before = heads_[bucket];
    while (cells_[next(before)].number != number) { before = next(before); }
    const std::uint32_t removed = next(before), after = cells_[removed].next;
    const bool was_first = before == heads_[bucket];
    const bool was_last = after == kEnd || cells_[after].number % buckets_ != bucket;
    set_next(before, after);
    if (was_last && after != kEnd) { heads_[cells_[after].number % buckets_] = before; }
    if (was_first && was_last) { heads_[bucket] = kEmptyBucket; }
    if (--count_ == 0) { cells_.clear(); }
  }

  [[nodiscard]] bool empty() const { return count_ == 0; }

  [[nodiscard]] std::vector<std::uint32_t> values() const {
    std::vector<std::uint32_t> values;
    values.reserve(count_);
    for (std::uint32_t i = first_; i != kEnd; i = cells_[i].next) { values.push_back(cells_[i].value); }
    return values;
  }

 private:
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  static constexpr std::uint32_t kFront = 0xFFFFFFFE;        // in place of a cell: before the first one
  static constexpr std::uint32_t kEmptyBucket = 0xFFFFFFFD;  // the head of an empty bucket
  static constexpr std::array<std::size_t, 18> kPrimes = {13,    29,     59,     127,    257,     541,
                                                          1109,  2357,   5087,   10273,  20753,   42043,
                                                          85229, 172933, 351061, 712697, 1447153, 2938679};

  struct Cell {
    std::uint64_t number;
    std::uint32_t value;
    std::uint32_t next;
  };

  [[nodiscard]] std::uint32_t next(std::uint32_t cell) const { return cell == kFront ? first_ : cells_[cell].next; }
  void set_next(std::uint32_t cell, std::uint32_t after) { (cell == kFront ? first_ : cells_[cell].next) = after; }

  // A bucket's head is the cell before its first.
  void place(std::uint32_t cell) {
    const std::size_t bucket = cells_[cell].number % buckets_;
    if (heads_[bucket] != kEmptyBucket) {
      cells_[cell].next = next(heads_[bucket]);
      set_next(heads_[bucket], cell);
      return;
    }
    cells_[cell].next = first_;
    if (first_ != kEnd) { heads_[cells_[first_].number % buckets_] = cell; }
    first_ = cell;
    heads_[bucket] = kFront;
  }

  void grow() {
    buckets_ = *std::upper_bound(kPrimes.begin(), kPrimes.end() - 1, std::max(buckets_, count_));
    heads_.assign(buckets_, kEmptyBucket);
    std::vector<Cell> old;
    for (std::uint32_t i = first_; i != kEnd; i = cells_[i].next) { old.push_back(cells_[i]); }
    cells_ = std::move(old);
    first_ = kEnd;
    for (std::uint32_t i = 0; i < cells_.size(); ++i) { place(i); }
  }

  std::vector<Cell> cells_;
  std::vector<std::uint32_t> heads_;
  std::uint32_t first_ = kEnd;
  std::size_t buckets_ = 0;
  std::size_t count_ = 0;
};

}  // namespace orrery::simulate
