// A set of small numbers with access to the smallest: a bit per number, a bit per 64 numbers, and so on. Memory: a bit
// per possible number. Time of an operation: a step per level (four levels for ten million). Private to the room.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace orrery::trace {

class ReadySet {
 public:
  ReadySet() = default;

  // Empty; for numbers below `end`.
  explicit ReadySet(std::size_t end) {
    do {
      end = (end + 63) / 64;
      levels_.emplace_back(end, 0);
    } while (end > 1);
  }

  void insert(std::uint32_t number) {
    ++size_;
    for (auto& level : levels_) {
      std::uint64_t& word = level[number / 64];
      const bool was_empty = word == 0;
      word |= std::uint64_t{1} << (number % 64);
      if (!was_empty) { return; }
      number /= 64;
    }
  }

  // Removes and returns the smallest; nothing if the set is empty.
  std::optional<std::uint32_t> pop() {
    if (size_ == 0) { return std::nullopt; }
    std::uint32_t at = 0;
    for (std::size_t i = levels_.size(); i-- > 0;) {
      at = at * 64 + static_cast<std::uint32_t>(std::countr_zero(levels_[i][at]));
    }
    erase(at);
    return at;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] std::size_t memory() const {  // bytes
    std::size_t words = 0;
    for (const auto& level : levels_) { words += level.capacity(); }
    return words * sizeof(std::uint64_t);
  }

 private:
  void erase(std::uint32_t number) {
    --size_;
    for (auto& level : levels_) {
      std::uint64_t& word = level[number / 64];
      word &= ~(std::uint64_t{1} << (number % 64));
      if (word != 0) { return; }
      number /= 64;
    }
  }

  std::vector<std::vector<std::uint64_t>> levels_;
  std::size_t size_ = 0;
};

}  // namespace orrery::trace
