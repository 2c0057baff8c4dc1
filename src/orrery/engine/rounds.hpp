// The event queue for models that must not depend on the order in which events of one time were registered.
//
// Time advances in instants, an instant in rounds. In a round all events that are due are handled, and then `end_round`
// is called once. It arbitrates between the requests of the round by their contents, not by their order. Events that a
// round registers for its own instant belong to the next round. A model whose handlers commute within a round, and
// whose arbitration depends on the set of requests only, gives the same run for any order of registration.
//
// Slots of the wheels (wheel_clock.hpp) are lists of blocks of entries: due events are contiguous in memory, so that
// the handler can prefetch what an event accesses. Blocks are reused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/engine/wheel_clock.hpp"

namespace orrery::engine {

template <class Event>
class Rounds {
 public:
  [[nodiscard]] Time now() const { return clock_.now(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }  // that were handled
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

  void at(Time time, const Event& event) {
    ORRERY_ASSERT(time >= now());
    push({time, event});
  }

  // Runs until no events are left. `handle` and `end_round` may call at(). If the handler has a member function
  // prefetch(event, distance), it is called for every event of a round before the event is handled: first with distance
  // 2, then with distance 1.
  template <class Handler, class EndRound>
  void run(Handler&& handle, EndRound&& end_round) {
    end_round();
    while (clock_.advance([&](WheelClock::Place place) { spread(place); })) {
      List due = empty(clock_.due());
      while (due.first != kNone) {
        drain(*blocks_[due.first], handle);
        const std::uint32_t next = blocks_[due.first]->next;
        release(due.first);
        due.first = next;
      }
      end_round();
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

  template <class Handler>
  void drain(const Block& block, Handler& handle) {
    const std::uint32_t count = block.count;
    const auto prefetch = [&](std::uint32_t i, int distance) {
      if constexpr (requires { handle.prefetch(block.entries[i].event, distance); }) {
        if (i < count) { handle.prefetch(block.entries[i].event, distance); }
      }
    };
    for (std::uint32_t i = 0; i < kFar && i < count; ++i) { prefetch(i, 2); }
    for (std::uint32_t i = 0; i < kNear && i < count; ++i) { prefetch(i, 1); }
    for (std::uint32_t i = 0; i < count; ++i) {
      prefetch(i + kFar, 2);
      prefetch(i + kNear, 1);
      handle(block.entries[i].event);
    }
    events_ += count;
  }

  void push(const Entry& entry) {
    const WheelClock::Place place = clock_.place(entry.time);
    List& list = lists_[place.level][place.slot];
    if (list.first == kNone) {
      list.first = list.last = take();
      clock_.use(place);
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

  // Empties a slot and returns its entries.
  [[nodiscard]] List empty(WheelClock::Place place) {
    const List list = lists_[place.level][place.slot];
    lists_[place.level][place.slot] = {};
    clock_.leave(place);
    return list;
  }

  // Time has reached the slot: moves its entries to lower wheels.
  void spread(WheelClock::Place place) {
    List list = empty(place);
    while (list.first != kNone) {
      const Block& block = *blocks_[list.first];
      for (std::uint32_t i = 0; i < block.count; ++i) { push(block.entries[i]); }
      const std::uint32_t next = block.next;
      release(list.first);
      list.first = next;
    }
  }

  WheelClock clock_;
  std::uint64_t events_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::uint32_t free_ = kNone;
  WheelClock::Lists<List> lists_{};
};

}  // namespace orrery::engine
