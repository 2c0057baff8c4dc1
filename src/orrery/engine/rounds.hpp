// The event queue for models that must not depend on the order in which events of one time were registered.
//
// Time goes on in instants, an instant in rounds. In a round all that is due by then happens, and then `settle` is
// called once: what many asked for in the round is decided there, by what is asked and not by who came first. Events
// that a round registers for its own instant belong to the round after it. A model whose handlers commute within a
// round, and whose decisions look at sets, gives the same run for any order of registration.
//
// A hierarchy of wheels as in wheel.hpp, whose slots are lists of blocks of entries: what is due lies side by side, so
// that the handler can be told of it well before it happens. Blocks are used again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::engine {

template <class Event>
class Rounds {
 public:
  using Time = std::uint64_t;

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }  // that have happened
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

  void at(Time time, const Event& event) {
    ORRERY_ASSERT(time >= now_);
    push({time, event});
  }

  // Until nothing is left to happen. `handle` and `settle` may call at(). `ahead` is told of events that are to happen
  // in this round: of each first with distance 2, a few events later with distance 1.
  template <class Handler, class Settle, class Ahead>
  void run(Handler&& handle, Settle&& settle, Ahead&& ahead) {
    settle();
    while (advance()) {
      List due = lists_[0][now_ % kSlots];
      clear(0, now_ % kSlots);
      while (due.first != kNone) {
        drain(*blocks_[due.first], handle, ahead);
        const std::uint32_t next = blocks_[due.first]->next;
        release(due.first);
        due.first = next;
      }
      settle();
    }
  }

 private:
  static constexpr int kBits = 8;
  static constexpr unsigned kSlots = 1U << kBits;
  static constexpr int kLevels = 64 / kBits;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kEntries = 84;  // of a block, about two kilobytes
  static constexpr std::uint32_t kNear = 6, kFar = 16;

  struct Entry {
    Time time;
    Event event;
  };
  struct Block {
    std::array<Entry, kEntries> entries;
    std::uint32_t count = 0;
    std::uint32_t next = kNone;
  };
  struct List {
    std::uint32_t first = kNone, last = kNone;
  };

  template <class Handler, class Ahead>
  void drain(const Block& block, Handler& handle, Ahead& ahead) {
    const std::uint32_t count = block.count;
    for (std::uint32_t i = 0; i < kFar && i < count; ++i) { ahead(block.entries[i].event, 2); }
    for (std::uint32_t i = 0; i < kNear && i < count; ++i) { ahead(block.entries[i].event, 1); }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i + kFar < count) { ahead(block.entries[i + kFar].event, 2); }
      if (i + kNear < count) { ahead(block.entries[i + kNear].event, 1); }
      handle(block.entries[i].event);
    }
    events_ += count;
  }

  void push(const Entry& entry) {
    const int level = (63 - std::countl_zero((entry.time ^ now_) | 1)) / kBits;
    const unsigned slot = static_cast<unsigned>(entry.time >> (level * kBits)) % kSlots;
    List& list = lists_[static_cast<unsigned>(level)][slot];
    if (list.first == kNone) {
      list.first = list.last = take();
      occupied_[static_cast<unsigned>(level)][slot / 64] |= std::uint64_t{1} << (slot % 64);
    } else if (blocks_[list.last]->count == kEntries) {
      const std::uint32_t fresh = take();
      blocks_[list.last]->next = fresh;
      list.last = fresh;
    }
    Block& block = *blocks_[list.last];
    block.entries[block.count++] = entry;
  }

  std::uint32_t take() {
    std::uint32_t number = free_;
    if (number == kNone) {
      number = static_cast<std::uint32_t>(blocks_.size());
      blocks_.push_back(std::make_unique<Block>());
    } else {
      free_ = blocks_[number]->next;
    }
    blocks_[number]->count = 0;
    blocks_[number]->next = kNone;
    return number;
  }

  void release(std::uint32_t number) {
    blocks_[number]->next = free_;
    free_ = number;
  }

  // Goes to the next time that has entries; false when there are none.
  bool advance() {
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
      spread(level, slot);
      level = 0;
    }
    return false;
  }

  // Entries of a slot whose time has come, to the wheels below.
  void spread(int level, unsigned slot) {
    List list = lists_[static_cast<unsigned>(level)][slot];
    clear(level, slot);
    while (list.first != kNone) {
      const Block& block = *blocks_[list.first];
      for (std::uint32_t i = 0; i < block.count; ++i) { push(block.entries[i]); }
      const std::uint32_t next = block.next;
      release(list.first);
      list.first = next;
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
  std::uint64_t events_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::uint32_t free_ = kNone;
  std::array<std::array<List, kSlots>, kLevels> lists_{};
  std::array<std::array<std::uint64_t, kSlots / 64>, kLevels> occupied_{};
};

}  // namespace orrery::engine
