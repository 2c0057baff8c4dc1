// A queue of entries by integer time, first in first out within a time.
//
// Entries of one time stay in order on the wheels (wheel_clock.hpp), because they are always in the same slot. They are
// links of lists in storage that the caller owns, so that a queue allocates nothing.
#pragma once

#include <cstdint>
#include <limits>

#include "orrery/engine/wheel_clock.hpp"

namespace orrery::engine {

using Link = std::uint32_t;
inline constexpr Link kNoLink = std::numeric_limits<Link>::max();

class Wheel {
 public:
  // The time of the entries that pop() gives, and the earliest that can be pushed.
  [[nodiscard]] Time now() const { return clock_.now(); }

  // `links[entry]` has the members `time`, which the caller sets to at least now(), and `next`, which this class sets.
  template <class Links>
  void push(Links& links, Link entry) {
    const WheelClock::Place place = clock_.place(links[entry].time);
    List& list = lists_[place.level][place.slot];
    links[entry].next = kNoLink;
    if (list.first == kNoLink) {
      list.first = entry;
      clock_.use(place);
    } else {
      links[list.last].next = entry;
    }
    list.last = entry;
  }

  // The next entry that is due now; kNoLink when there is none left.
  template <class Links>
  Link pop(Links& links) {
    const WheelClock::Place due = clock_.due();
    List& list = lists_[due.level][due.slot];
    const Link entry = list.first;
    if (entry == kNoLink) { return kNoLink; }
    list.first = links[entry].next;
    if (list.first == kNoLink) { static_cast<void>(empty(due)); }
    return entry;
  }

  // Advances to the next time that has entries; false when there are no entries.
  template <class Links>
  bool advance(Links& links) {
    return clock_.advance([&](WheelClock::Place place) {
      Link entry = empty(place);
      while (entry != kNoLink) {
        const Link next = links[entry].next;
        push(links, entry);
        entry = next;
      }
    });
  }

 private:
  struct List {
    Link first = kNoLink;
    Link last = kNoLink;
  };

  // Empties a slot and returns its first entry.
  [[nodiscard]] Link empty(WheelClock::Place place) {
    const Link first = lists_[place.level][place.slot].first;
    lists_[place.level][place.slot] = {};
    clock_.leave(place);
    return first;
  }

  WheelClock clock_;
  WheelClock::Lists<List> lists_{};
};

}  // namespace orrery::engine
