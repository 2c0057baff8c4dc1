// What happens next: a queue of entries by integer time, first in first out within a time.
//
// A hierarchy of wheels, one per byte of the time: an entry waits on the wheel of the highest byte in which its time
// differs from now, and steps down a wheel when time comes to its slot. Every entry steps down at most once per byte of
// its delay, whatever the number of entries, and entries of one time never overtake each other, because they are in the
// same slot at any moment. Entries are links of lists in storage that the caller owns, so that a queue allocates
// nothing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace orrery::engine {

using Time = std::uint64_t;  // nanoseconds, or whatever unit the caller counts in

using Link = std::uint32_t;
inline constexpr Link kNoLink = std::numeric_limits<Link>::max();

class Wheel {
 public:
  // The time of the entries that pop() gives, and the earliest that can be pushed.
  [[nodiscard]] Time now() const { return now_; }

  // `links[entry]` has the members `time` (when, set by the caller; not before now()) and `next` (ours).
  template <class Links>
  void push(Links& links, Link entry) {
    const Time time = links[entry].time;
    const int level = (63 - std::countl_zero((time ^ now_) | 1)) / kBits;
    append(links, level, static_cast<unsigned>(time >> (level * kBits)) % kSlots, entry);
  }

  // The next entry of the time that is now; kNoLink when there is none left.
  template <class Links>
  Link pop(Links& links) {
    List& list = lists_[0][now_ % kSlots];
    const Link entry = list.first;
    if (entry == kNoLink) { return kNoLink; }
    list.first = links[entry].next;
    if (list.first == kNoLink) { clear(0, now_ % kSlots); }
    return entry;
  }

  // Goes to the next time that has entries; false when there are no entries.
  template <class Links>
  bool advance(Links& links) {
    for (int level = 0; level < kLevels;) {
      const unsigned digit = static_cast<unsigned>(now_ >> (level * kBits)) % kSlots;
      const unsigned slot = occupied_from(level, level == 0 ? digit : digit + 1);
      if (slot == kSlots) {
        ++level;
        continue;
      }
      const int shift = level * kBits;
      now_ = (((now_ >> shift) & ~Time{kSlots - 1}) | slot) << shift;
      if (level == 0) { return true; }
      spread(links, level, slot);
      level = 0;
    }
    return false;
  }

 private:
  static constexpr int kBits = 8;
  static constexpr unsigned kSlots = 1U << kBits;
  static constexpr int kLevels = 64 / kBits;

  struct List {
    Link first = kNoLink;
    Link last = kNoLink;
  };

  template <class Links>
  void append(Links& links, int level, unsigned slot, Link entry) {
    List& list = lists_[static_cast<unsigned>(level)][slot];
    links[entry].next = kNoLink;
    if (list.first == kNoLink) {
      list.first = entry;
      occupied_[static_cast<unsigned>(level)][slot / 64] |= std::uint64_t{1} << (slot % 64);
    } else {
      links[list.last].next = entry;
    }
    list.last = entry;
  }

  // Entries of a slot whose time has come, to the wheels below.
  template <class Links>
  void spread(Links& links, int level, unsigned slot) {
    Link entry = lists_[static_cast<unsigned>(level)][slot].first;
    clear(level, slot);
    while (entry != kNoLink) {
      const Link next = links[entry].next;
      push(links, entry);
      entry = next;
    }
  }

  void clear(int level, Time slot) {
    lists_[static_cast<unsigned>(level)][slot] = {};
    occupied_[static_cast<unsigned>(level)][slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  }

  // The first slot from `slot` on that has entries, kSlots when none has.
  [[nodiscard]] unsigned occupied_from(int level, unsigned slot) const {
    const auto& words = occupied_[static_cast<unsigned>(level)];
    for (unsigned word = slot / 64; word < words.size(); ++word) {
      const std::uint64_t bits = word == slot / 64 ? words[word] & (~std::uint64_t{0} << (slot % 64)) : words[word];
      if (bits != 0) { return word * 64 + static_cast<unsigned>(std::countr_zero(bits)); }
    }
    return kSlots;
  }

  Time now_ = 0;
  std::array<std::array<List, kSlots>, kLevels> lists_{};
  std::array<std::array<std::uint64_t, kSlots / 64>, kLevels> occupied_{};
};

}  // namespace orrery::engine
