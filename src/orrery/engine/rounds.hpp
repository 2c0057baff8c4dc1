// The event queue for models that must not depend on the order in which events of one time were registered.
//
// Time goes on in instants, an instant in rounds. In a round all that is due by then happens, and then `settle` is
// called once: what many asked for in the round is decided there, by what is asked and not by who came first. Events
// that a round registers for its own instant belong to the round after it. A model whose handlers commute within a
// round, and whose decisions look at sets, gives the same run for any order of registration.
//
// Slots of the wheels (dial.hpp) are lists of blocks of entries: what is due lies side by side, so
// that the handler can be told of it well before it happens. Blocks are used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/engine/dial.hpp"

namespace orrery::engine {

template <class Event>
class Rounds {
 public:
  [[nodiscard]] Time now() const { return dial_.now(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }  // that have happened
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

  void at(Time time, const Event& event) {
    ORRERY_ASSERT(time >= now());
    push({time, event});
  }

  // Until nothing is left to happen. `handle` and `settle` may call at(). `ahead` is told of events that are to happen
  // in this round: of each first with distance 2, a few events later with distance 1.
  template <class Handler, class Settle, class Ahead>
  void run(Handler&& handle, Settle&& settle, Ahead&& ahead) {
    settle();
    while (dial_.advance([&](Dial::Place place) { spread(place); })) {
      List due = empty(dial_.due());
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
    const Dial::Place place = dial_.place(entry.time);
    List& list = lists_[place.level][place.slot];
    if (list.first == kNone) {
      list.first = list.last = take();
      dial_.use(place);
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

  // Empties a slot; what was there.
  [[nodiscard]] List empty(Dial::Place place) {
    const List list = lists_[place.level][place.slot];
    lists_[place.level][place.slot] = {};
    dial_.leave(place);
    return list;
  }

  // Entries of a slot whose time has come, to the wheels below.
  void spread(Dial::Place place) {
    List list = empty(place);
    while (list.first != kNone) {
      const Block& block = *blocks_[list.first];
      for (std::uint32_t i = 0; i < block.count; ++i) { push(block.entries[i]); }
      const std::uint32_t next = block.next;
      release(list.first);
      list.first = next;
    }
  }

  Dial dial_;
  std::uint64_t events_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::uint32_t free_ = kNone;
  Dial::Lists<List> lists_{};
};

}  // namespace orrery::engine
