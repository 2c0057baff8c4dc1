// The clock of a hierarchical timing wheel with one wheel per byte of the time. It advances from one slot in use to the
// next. The entries of slots are stored by the owners of the clock (wheel.hpp, rounds.hpp).
//
// An entry waits in the slot of the highest byte in which its time differs from now, and moves to a lower wheel when
// time reaches that slot: at most once per byte of its delay, whatever the number of entries.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace orrery::engine {

using Time = std::uint64_t;  // nanoseconds, or whatever unit the caller counts in

class WheelClock {
 public:
  static constexpr int kBits = 8;
  static constexpr unsigned kSlots = 1U << kBits;
  static constexpr int kLevels = 64 / kBits;

  struct Place {
    unsigned level, slot;
  };
  template <class List>
  using Lists = std::array<std::array<List, kSlots>, kLevels>;

  [[nodiscard]] Time now() const { return now_; }

  // The slot in which an entry of `time` waits; `time` is at least now(). due(): the slot of the entries that are due
  // now.
  [[nodiscard]] Place place(Time time) const {
    const int level = (63 - std::countl_zero((time ^ now_) | 1)) / kBits;
    return {static_cast<unsigned>(level), static_cast<unsigned>(time >> (level * kBits)) % kSlots};
  }
  [[nodiscard]] Place due() const { return {0, static_cast<unsigned>(now_ % kSlots)}; }

  void use(Place place) { in_use_[place.level][place.slot / 64] |= std::uint64_t{1} << (place.slot % 64); }
  void leave(Place place) { in_use_[place.level][place.slot / 64] &= ~(std::uint64_t{1} << (place.slot % 64)); }

  // Advances to the next time at which an entry is due; false when there are no entries. `spread` is called for each
  // slot of a higher wheel that is reached: it empties the slot and inserts the entries again by place().
  template <class Spread>
  bool advance(Spread&& spread) {
    for (int level = 0; level < kLevels;) {
      const unsigned digit = static_cast<unsigned>(now_ >> (level * kBits)) % kSlots;
      const unsigned slot = used_from(level, level == 0 ? digit : digit + 1);
      if (slot == kSlots) {
        ++level;
        continue;
      }
      const int shift = level * kBits;
      now_ = (((now_ >> shift) & ~Time{kSlots - 1}) | slot) << shift;
      if (level == 0) { return true; }
      spread(Place{static_cast<unsigned>(level), slot});
      level = 0;
    }
    return false;
  }

 private:
  // The first slot from `slot` on that is in use, kSlots when none is.
  [[nodiscard]] unsigned used_from(int level, unsigned slot) const {
    const auto& words = in_use_[static_cast<unsigned>(level)];
    for (unsigned word = slot / 64; word < words.size(); ++word) {
      const std::uint64_t bits = word == slot / 64 ? words[word] & (~std::uint64_t{0} << (slot % 64)) : words[word];
      if (bits != 0) { return word * 64 + static_cast<unsigned>(std::countr_zero(bits)); }
    }
    return kSlots;
  }

  Time now_ = 0;
  std::array<std::array<std::uint64_t, kSlots / 64>, kLevels> in_use_{};
};

}  // namespace orrery::engine
