// The event queue for models that must not depend on the order in which events of one time were registered.
//
// Time advances in instants, an instant in rounds. In a round all events that are due are handled, and then `end_round`
// is called once. It arbitrates between the requests of the round by their contents, not by their order. Events that a
// round registers for its own instant belong to the next round. A model whose handlers commute within a round, and
// whose arbitration depends on the set of requests only, gives the same run for any order of registration.
//
// The calendar (calendar.hpp) has the next events contiguous in memory, those of later rounds included, so that the
// handler can prefetch what an event accesses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "orrery/core/error.hpp"
#include "orrery/engine/calendar.hpp"

namespace orrery::engine {

template <class Event>
class Rounds {
 public:
  [[nodiscard]] Time now() const { return calendar_.now(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }               // that were handled
  [[nodiscard]] std::size_t capacity() const { return calendar_.capacity(); }  // events that there is storage for

  void at(Time time, const Event& event) {
    ORRERY_ASSERT(time >= now() && time != Calendar<Entry>::kNever);
    calendar_.add(time).event = event;
  }

  // Counts events that were handled as a part of others.
  void count(std::uint64_t events) { events_ += events; }

  // Runs until no events are left. `handle` and `end_round` may call at(). If the handler has a member function
  // prefetch(event, distance), it is called for most events before they are handled, even rounds before: with distance
  // 2, then with distance 1.
  template <class Handler, class EndRound>
  void run(Handler&& handle, EndRound&& end_round) {
    constexpr bool kPrefetches = requires(const Event& event) { handle.prefetch(event, 1); };
    const auto prefetch = [&](std::uint32_t ahead, int distance) {
      if constexpr (kPrefetches) {
        calendar_.peek(ahead, [&](const Entry& entry) { handle.prefetch(entry.event, distance); });
      }
    };
    const auto prefetch_all = [&] {
      for (std::uint32_t i = 0; i < kFar; ++i) { prefetch(i, 3); }
      for (std::uint32_t i = 0; i < kMiddle; ++i) { prefetch(i, 2); }
      for (std::uint32_t i = 0; i < kNear; ++i) { prefetch(i, 1); }
    };
    end_round();
    while (calendar_.advance(prefetch_all)) {
      while (const Entry* const entry = calendar_.pop()) {
        const Event event = entry->event;  // a copy: storage is used again
        prefetch(kFar, 3);
        prefetch(kMiddle, 2);
        prefetch(kNear, 1);
        ++events_;
        handle(event);
      }
      end_round();
    }
  }

 private:
  static constexpr std::uint32_t kNear = 5, kMiddle = 12, kFar = 24;  // events

  struct Entry {
    Time time = 0;
    Event event;
  };

  Calendar<Entry> calendar_;
  std::uint64_t events_ = 0;
};

}  // namespace orrery::engine
