// Objects of one type by number, with reuse of those that are given back. Their addresses do not change. Private to the
// room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

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
    if (made_ % kBlock == 0) { blocks_.push_back(std::make_unique<T[]>(kBlock)); }  // NOLINT(*-avoid-c-arrays)
    return made_++;
  }
  void give_back(std::uint32_t number) { free_.push_back(number); }

  [[nodiscard]] std::uint32_t made() const { return made_; }

 private:
  static constexpr std::uint32_t kBlock = 1024;

  std::vector<std::unique_ptr<T[]>> blocks_;  // NOLINT(*-avoid-c-arrays)
  std::vector<std::uint32_t> free_;
  std::uint32_t made_ = 0;
};

}  // namespace orrery::simulate
