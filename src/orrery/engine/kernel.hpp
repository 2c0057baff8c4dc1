// The event kernel: an integer clock and a calendar of events.
//
//   struct Event { … };                         // plain, small: it is copied
//   Kernel<Event> kernel(lanes);
//   kernel.at(3, {…});                          // at a time
//   kernel.after(lane, 5, {…});                 // a time from now, in a lane
//   kernel.run([&](const Event& event) { … });  // may call at() and after()
//
// Events of one time are handled in the order in which they were registered, with one exception: events of one lane and
// one time are handled back to back, in the position of the first of them. Events that are registered for this time
// after they were handled come last. Both rules use the order of registration and nothing else, so that the same calls
// give the same run.
//
// An event needs 32 bytes in addition to its own size. Storage is reused: once the number of pending events has reached
// its maximum, a run allocates nothing. The cost of an event does not depend on the number of pending events. In a lane
// with more than 16 pending times it includes a look-up in a hash table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/engine/pending_times.hpp"
#include "orrery/engine/wheel.hpp"

namespace orrery::engine {

template <class Event>
class Kernel {
 public:
  explicit Kernel(std::size_t lanes) : lanes_(lanes) {}

  [[nodiscard]] Time now() const { return wheel_.now(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }  // that were handled
  [[nodiscard]] std::size_t capacity() const { return links_.size(); }

  void at(Time time, const Event& event) {
    ORRERY_ASSERT(time >= now());
    const Link entry = take(event);
    links_[entry].time = time;
    links_[entry].lane = kNoLane;
    wheel_.push(links_, entry);
  }

  void after(std::uint32_t lane, Time delay, const Event& event) {
    const Time time = now() + delay;
    ORRERY_ASSERT(time >= delay);
    const Link entry = take(event);
    const Link head = find(lane, time);
    if (head == kNoLink) {
      open(lane, time, entry);
    } else {
      join(head, entry);
    }
  }

  // Runs until no events are left. If the handler has a member function prefetch(event), it is called with the event
  // that is likely to be next.
  template <class Handler>
  void run(Handler&& handle) {
    while (wheel_.advance(links_)) {
      for (Link entry = wheel_.pop(links_); entry != kNoLink; entry = wheel_.pop(links_)) {
        if constexpr (requires { handle.prefetch(links_[entry].event); }) {
          if (const Link next = links_[entry].next; next != kNoLink) { handle.prefetch(links_[next].event); }
        }
        if (links_[entry].lane == kNoLane) {
          call(handle, entry);
          release(entry);
        } else {
          drain(handle, entry);
        }
      }
    }
  }

 private:
  static constexpr std::uint32_t kNoLane = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kFewTimes = 16;  // pending times of a lane; more of them are found by a table

  // The wheel holds the first event of each pair of lane and time. The other events of the pair are a circular list:
  // `more` is the last of them, whose `next` is the first.
  struct Entry {
    Time time;
    Link next;
    Link more;
    std::uint32_t lane;
    Link older, newer;  // pending times of the lane
    Event event;
  };

  struct Lane {
    Link newest = kNoLink;
    std::uint32_t times = 0;
  };

  Link take(const Event& event) {
    Link entry = free_;
    if (entry == kNoLink) {
      entry = static_cast<Link>(links_.size());
      ORRERY_ASSERT(entry != kNoLink);
      links_.emplace_back();
    } else {
      free_ = links_[entry].next;
    }
    links_[entry].event = event;
    return entry;
  }

  void release(Link entry) {
    links_[entry].next = free_;
    free_ = entry;
  }

  template <class Handler>
  void call(Handler& handle, Link entry) {
    ++events_;
    const Event event = links_[entry].event;  // a copy: storage may move
    handle(event);
  }

  [[nodiscard]] Link find(std::uint32_t lane, Time time) const {
    if (lanes_[lane].times > kFewTimes) { return pending_.find(lane, time); }
    Link head = lanes_[lane].newest;
    while (head != kNoLink && links_[head].time != time) { head = links_[head].older; }
    return head;
  }

  void open(std::uint32_t number, Time time, Link entry) {
    Lane& lane = lanes_[number];
    Entry& head = links_[entry];
    head.time = time;
    head.lane = number;
    head.more = kNoLink;
    head.older = lane.newest;
    head.newer = kNoLink;
    if (lane.newest != kNoLink) { links_[lane.newest].newer = entry; }
    lane.newest = entry;
    ++lane.times;
    if (lane.times == kFewTimes + 1) {
      for (Link i = lane.newest; i != kNoLink; i = links_[i].older) { pending_.insert(number, links_[i].time, i); }
    } else if (lane.times > kFewTimes) {
      pending_.insert(number, time, entry);
    }
    wheel_.push(links_, entry);
  }

  void join(Link head, Link entry) {
    const Link last = links_[head].more;
    links_[entry].next = last == kNoLink ? entry : links_[last].next;
    if (last != kNoLink) { links_[last].next = entry; }
    links_[head].more = entry;
  }

  template <class Handler>
  void drain(Handler& handle, Link head) {
    call(handle, head);
    while (links_[head].more != kNoLink) {
      const Link last = links_[head].more;
      const Link first = links_[last].next;
      if (first == last) {
        links_[head].more = kNoLink;
      } else {
        links_[last].next = links_[first].next;
      }
      call(handle, first);
      release(first);
    }
    close(head);
    release(head);
  }

  void close(Link head) {
    const Entry& entry = links_[head];
    Lane& lane = lanes_[entry.lane];
    if (lane.times > kFewTimes + 1) {
      pending_.erase(entry.lane, entry.time);
    } else if (lane.times == kFewTimes + 1) {
      for (Link i = lane.newest; i != kNoLink; i = links_[i].older) { pending_.erase(entry.lane, links_[i].time); }
    }
    --lane.times;
    if (entry.older != kNoLink) { links_[entry.older].newer = entry.newer; }
    (entry.newer != kNoLink ? links_[entry.newer].older : lane.newest) = entry.older;
  }

  Wheel wheel_;
  std::vector<Entry> links_;
  Link free_ = kNoLink;
  std::vector<Lane> lanes_;
  PendingTimes pending_;
  std::uint64_t events_ = 0;
};

}  // namespace orrery::engine
