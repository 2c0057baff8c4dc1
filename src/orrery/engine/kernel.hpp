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
// Storage is reused: once the number of pending events has reached its maximum, a run allocates nothing. The cost of an
// event hardly depends on the number of pending events (calendar.hpp). In a lane with more than 16 pending times it
// includes a look-up in a hash table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/engine/calendar.hpp"
#include "orrery/engine/pending_times.hpp"
#include "orrery/engine/prefetch.hpp"

namespace orrery::engine {

template <class Event>
class Kernel {
 public:
  explicit Kernel(std::size_t lanes) : lanes_(lanes) {}

  [[nodiscard]] Time now() const { return calendar_.now(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }  // that were handled
  // Entries that there is storage for.
  [[nodiscard]] std::size_t capacity() const { return calendar_.capacity() + heads_.size() + followers_.size(); }

  void at(Time time, const Event& event) {
    ORRERY_ASSERT(time >= now() && time != Calendar<Due>::kNever);
    Due& due = calendar_.add(time);
    due.head = kNoLink;
    due.event = event;
  }

  void after(std::uint32_t lane, Time delay, const Event& event) {
    const Time time = now() + delay;
    ORRERY_ASSERT(time >= delay && time != Calendar<Due>::kNever);
    const Link head = find(lane, time);
    if (head == kNoLink) {
      Due& due = calendar_.add(time);
      due.head = open(lane, time);
      due.event = event;
    } else {
      join(head, event);
    }
  }

  // As above; but `join(last, event)` is called if an event was registered for the lane and time before, other than the
  // first. If it returns true, it has added the new event to that one, which is the one before it in the order.
  template <class Join>
  void after(std::uint32_t lane, Time delay, const Event& event, Join&& join) {
    const Time time = now() + delay;
    ORRERY_ASSERT(time >= delay);
    const Link head = find(lane, time);
    if (head == kNoLink || heads_[head].last == kNoLink) { return after(lane, delay, event); }
    Event& last = followers_[heads_[head].last].event;
    if (!join(last, event)) { this->join(head, event); }
  }
  // Prefetches what after() accesses first.
  void prefetch_lane(std::uint32_t lane) const { prefetch(&lanes_[lane]); }
  // Counts events that were handled as a part of others.
  void count(std::uint64_t events) { events_ += events; }

  // Runs until no events are left. If the handler has a member function prefetch(event), it is called for most events
  // some events before they are handled.
  template <class Handler>
  void run(Handler&& handle) {
    constexpr bool kPrefetches = requires(const Event& event) { handle.prefetch(event); };
    const auto fetch = [&](const Due& due) {
      if (due.head != kNoLink) { prefetch(&heads_[due.head]); }
      if constexpr (kPrefetches) { handle.prefetch(due.event); }
    };
    const auto fetch_all = [&] {
      for (std::uint32_t i = 0; i < kAhead; ++i) { calendar_.peek(i, fetch); }
    };
    while (calendar_.advance(fetch_all)) {
      while (const Due* const due = calendar_.pop()) {
        calendar_.peek(kAhead, fetch);
        const Link head = due->head;
        const Event event = due->event;  // a copy: storage is used again
        ++events_;
        handle(event);
        if (head != kNoLink) { drain(handle, head); }
      }
    }
  }

 private:
  static constexpr std::uint32_t kFewTimes = 16;  // pending times of a lane; more of them are found by a table
  static constexpr std::uint32_t kAhead = 8;      // so many events before it, what an event accesses is prefetched

  // An event without a lane, or the first event of a pair of lane and time.
  struct Due {
    Time time = 0;
    Link head = kNoLink;
    Event event;
  };
  // A pair of lane and time that has an event in the calendar. The other events of the pair are a circular list: `last`
  // is the last of them, whose `next` is the first.
  struct Head {
    Time time = 0;
    Link last = kNoLink;
    std::uint32_t lane = 0;
    Link older = kNoLink, newer = kNoLink;  // pending times of the lane; `older` also: of the free ones
  };
  struct Follower {
    Link next = kNoLink;
    Event event;
  };
  struct Lane {
    Link newest = kNoLink;
    std::uint32_t times = 0;
  };

  [[nodiscard]] Link find(std::uint32_t lane, Time time) const {
    if (lanes_[lane].times > kFewTimes) { return pending_.find(lane, time); }
    Link head = lanes_[lane].newest;
    while (head != kNoLink && heads_[head].time != time) { head = heads_[head].older; }
    return head;
  }

  Link open(std::uint32_t number, Time time) {
    Link made = free_head_;
    if (made == kNoLink) {
      made = static_cast<Link>(heads_.size());
      ORRERY_ASSERT(made != kNoLink);
      heads_.emplace_back();
    } else {
      free_head_ = heads_[made].older;
    }
    Lane& lane = lanes_[number];
    heads_[made] = {time, kNoLink, number, lane.newest, kNoLink};
    if (lane.newest != kNoLink) { heads_[lane.newest].newer = made; }
    lane.newest = made;
    ++lane.times;
    if (lane.times == kFewTimes + 1) {
      for (Link i = lane.newest; i != kNoLink; i = heads_[i].older) { pending_.insert(number, heads_[i].time, i); }
    } else if (lane.times > kFewTimes) {
      pending_.insert(number, time, made);
    }
    return made;
  }

  void join(Link head, const Event& event) {
    Link made = free_follower_;
    if (made == kNoLink) {
      made = static_cast<Link>(followers_.size());
      ORRERY_ASSERT(made != kNoLink);
      followers_.emplace_back();
    } else {
      free_follower_ = followers_[made].next;
    }
    const Link last = heads_[head].last;
    followers_[made].event = event;
    followers_[made].next = last == kNoLink ? made : followers_[last].next;
    if (last != kNoLink) { followers_[last].next = made; }
    heads_[head].last = made;
  }

  // Handles the other events of a pair of lane and time, including those that are registered meanwhile.
  template <class Handler>
  void drain(Handler& handle, Link head) {
    while (heads_[head].last != kNoLink) {
      const Link last = heads_[head].last;
      const Link first = followers_[last].next;
      if (first == last) {
        heads_[head].last = kNoLink;
      } else {
        followers_[last].next = followers_[first].next;
      }
      const Event event = followers_[first].event;
      followers_[first].next = free_follower_;
      free_follower_ = first;
      ++events_;
      handle(event);
    }
    close(head);
  }

  void close(Link number) {
    Head& head = heads_[number];
    Lane& lane = lanes_[head.lane];
    if (lane.times > kFewTimes + 1) {
      pending_.erase(head.lane, head.time);
    } else if (lane.times == kFewTimes + 1) {
      for (Link i = lane.newest; i != kNoLink; i = heads_[i].older) { pending_.erase(head.lane, heads_[i].time); }
    }
    --lane.times;
    if (head.older != kNoLink) { heads_[head.older].newer = head.newer; }
    (head.newer != kNoLink ? heads_[head.newer].older : lane.newest) = head.older;
    head.older = free_head_;
    free_head_ = number;
  }

  Calendar<Due> calendar_;
  std::vector<Head> heads_;
  std::vector<Follower> followers_;
  Link free_head_ = kNoLink, free_follower_ = kNoLink;
  std::vector<Lane> lanes_;
  PendingTimes pending_;
  std::uint64_t events_ = 0;
};

}  // namespace orrery::engine
