// Objects of one type by number, with reuse of those that are given back. Their addresses do not change. Private to the
// room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "orrery/core/large_pages.hpp"

namespace orrery::simulate {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

template <class T>
class Pool {
 public:
  [[nodiscard]] T& operator[](std::uint32_t number) { return blocks_[number / kBlock][number % kBlock]; }
  [[nodiscard]] const T& operator[](std::uint32_t number) const { return blocks_[number / kBlock][number % kBlock]; }

  // A free number, preferably the one that was given back last. The object is not reset.
  [[nodiscard]] std::uint32_t take() {
    if (!free_.empty()) {
      const std::uint32_t number = free_.back();
      free_.pop_back();
      return number;
    }
    if (made_ == blocks_.size() * kBlock) { grow(); }
    return made_++;
  }
  // As take(); the object is what make() returns, constructed in its place.
  template <class Make>
  [[nodiscard]] std::uint32_t take(Make&& make) {
    const std::uint32_t number = take();
    ::new (static_cast<void*>(&(*this)[number])) T(make());
    return number;
  }
  void give_back(std::uint32_t number) { free_.push_back(number); }

  [[nodiscard]] std::uint32_t made() const { return made_; }

 private:
  static constexpr std::uint32_t kBlock = 1024;
  static constexpr std::size_t kMostBlocks = 32;  // of one allocation

  void grow() {
    const std::size_t count = std::clamp<std::size_t>(blocks_.size(), 1, kMostBlocks);
    Storage& made = storage_.emplace_back(count * kBlock);
    for (std::size_t i = 0; i < count; ++i) { blocks_.push_back(made.data() + i * kBlock); }
  }

  using Storage = std::vector<T, LargePages<T>>;
  std::vector<Storage> storage_;
  std::vector<T*> blocks_;  // in storage_
  std::vector<std::uint32_t> free_;
  std::uint32_t made_ = 0;
};

}  // namespace orrery::simulate
