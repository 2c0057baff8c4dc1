// The slots of a hierarchical timing wheel with one wheel per byte of the time: in which slot an entry waits, and which
// slot in use is next. The entries are stored by the owner (calendar.hpp). Private to the room.
//
// An entry waits in the slot of the highest byte in which its time differs from the base, and moves to a lower wheel
// when the base reaches that slot: at most once per byte of its delay, whatever the number of entries. Entries of one
// time are in the same slot at any moment.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

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

  // At most the time of any entry in a slot.
  [[nodiscard]] Time base() const { return base_; }

  // The highest byte in which two times differ.
  [[nodiscard]] static unsigned level(Time difference) {
    return static_cast<unsigned>((63 - std::countl_zero(difference | 1)) / kBits);
  }

  // The slot in which an entry of `time` waits; `time` is at least base().
  [[nodiscard]] Place place(Time time) const {
    const unsigned at = level(time ^ base_);
    return {at, static_cast<unsigned>(time >> (at * kBits)) % kSlots};
  }

  void use(Place place) {
    in_use_[place.level][place.slot / 64] |= std::uint64_t{1} << (place.slot % 64);
    levels_ |= 1U << place.level;
  }
  void leave(Place place) {
    auto& words = in_use_[place.level];
    words[place.slot / 64] &= ~(std::uint64_t{1} << (place.slot % 64));
    if ((words[0] | words[1] | words[2] | words[3]) == 0) { levels_ &= ~(1U << place.level); }
  }
  [[nodiscard]] bool is_empty() const { return levels_ == 0; }

  // The slot of the earliest entries; none when no slot is in use. Slots before the base's are never in use.
  [[nodiscard]] std::optional<Place> next() const {
    if (levels_ == 0) { return std::nullopt; }
    const auto lowest = static_cast<unsigned>(std::countr_zero(levels_));
    unsigned word = 0;
    while (in_use_[lowest][word] == 0) { ++word; }
    return Place{lowest, word * 64 + static_cast<unsigned>(std::countr_zero(in_use_[lowest][word]))};
  }

  // The first time of a slot, and the last.
  [[nodiscard]] Time start(Place place) const {
    const unsigned shift = place.level * kBits;
    return (((base_ >> shift) & ~Time{kSlots - 1}) | place.slot) << shift;
  }
  [[nodiscard]] Time last(Place place) const { return start(place) | ((Time{1} << (place.level * kBits)) - 1); }

  // Moves the base: to a time in the earliest slot, after that was emptied; or to any time if no slot is in use.
  void reach(Time base) { base_ = base; }

 private:
  static_assert(kSlots == 4 * 64);

  Time base_ = 0;
  unsigned levels_ = 0;  // with slots in use
  std::array<std::array<std::uint64_t, kSlots / 64>, kLevels> in_use_{};
};

}  // namespace orrery::engine
