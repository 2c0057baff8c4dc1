#include "orrery/engine/calendar.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::engine::calendar_test {
namespace {

struct Entry {
  Time time = 0;
  std::uint32_t number = 0;
};

// Reference implementation: (time, order of registration) in a tree.
class ReferenceCalendar {
 public:
  [[nodiscard]] Time now() const { return now_; }
  void push(const Entry& entry) { entries_.emplace(entry.time, entry.number); }
  // All entries of the earliest time.
  std::vector<std::uint32_t> advance() {
    now_ = entries_.begin()->first;
    const auto end = entries_.upper_bound(now_);
    std::vector<std::uint32_t> due;
    for (auto i = entries_.begin(); i != end; ++i) { due.push_back(i->second); }
    entries_.erase(entries_.begin(), end);
    return due;
  }
  [[nodiscard]] bool is_empty() const { return entries_.empty(); }

 private:
  Time now_ = 0;
  std::multimap<Time, std::uint32_t> entries_;  // equal keys are in the order of insertion
};

// Random times for every case of the calendar: the same instant, few times, every wheel, boundaries of slots, the
// latest time.
class Delays {
 public:
  explicit Delays(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t end) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 20) % end;
  }
  [[nodiscard]] Time next(Time now) {
    const Time room = Calendar<Entry>::kNever - 1 - now;
    return now + std::min(room, delay(now));
  }
  void change_kind() { kind_ = below(7); }

 private:
  [[nodiscard]] Time delay(Time now) {
    switch (kind_) {
      case 0: return 0;
      case 1: return below(3);
      case 2: return 1000;
      case 3: return below(100'000);
      case 4: return below(Time{1} << below(40));
      case 5: {  // next to a boundary of slots
        const Time slot = Time{1} << (8 * (1 + below(5)));
        return slot - now % slot + below(3) - 1;
      }
      default: return below(20) == 0 ? below(Time{1} << 44) << below(20) : below(5000);
    }
  }

  std::uint64_t state_;
  std::uint64_t kind_ = 0;
};

// Entries are added before, between and after others are handled, with delays whose distribution changes.
RC_GTEST_PROP(Calendar, agrees_with_the_reference_implementation, (std::uint64_t seed)) {
  Delays delays(seed);
  Calendar<Entry> calendar;
  ReferenceCalendar reference;
  std::uint32_t made = 0;
  const std::uint64_t most = 1 + delays.below(delays.below(20) == 0 ? 40'000 : 3000);
  const auto push = [&] {
    const Entry entry{delays.next(reference.now()), made++};
    calendar.add(entry.time).number = entry.number;
    reference.push(entry);
  };
  for (int refills = 0; refills < 3; ++refills) {
    delays.change_kind();
    for (std::uint64_t i = delays.below(most); i > 0; --i) { push(); }
    std::uint64_t left = 2 * most;
    while (!reference.is_empty()) {
      RC_ASSERT(calendar.advance([] {}));
      for (const std::uint32_t number : reference.advance()) {
        const Entry* const entry = calendar.pop();
        RC_ASSERT(entry != nullptr);
        RC_ASSERT(std::pair(entry->time, entry->number) == std::pair(reference.now(), number));
        RC_ASSERT(calendar.now() == reference.now());
        if (delays.below(200) == 0) { delays.change_kind(); }
        for (std::uint64_t i = delays.below(3); i > 0 && left > 0; --i, --left) { push(); }
      }
      RC_ASSERT(calendar.pop() == nullptr);
    }
    RC_ASSERT(!calendar.advance([] {}));
  }
}

TEST(Calendar, entries_of_one_time_stay_in_order_when_the_array_overflows) {
  for (const Time time : {Time{0}, Time{5}, Time{70'000}}) {
    Calendar<Entry> calendar;
    for (std::uint32_t i = 0; i < 300; ++i) { calendar.add(time).number = i; }
    std::uint32_t next = 0, made = 300;
    while (calendar.advance([] {})) {
      EXPECT_EQ(calendar.now(), time);
      while (const Entry* const entry = calendar.pop()) {
        ASSERT_EQ(entry->number, next++);
        if (made < 1000) { calendar.add(time).number = made++; }
      }
    }
    EXPECT_EQ(next, 1000U);
  }
}

TEST(Calendar, peek_gives_what_pop_gives_later) {
  for (const std::uint32_t count : {3U, 50U, 400U}) {
    Calendar<Entry> calendar;
    for (std::uint32_t i = 0; i < count; ++i) { calendar.add(7).number = i; }
    ASSERT_TRUE(calendar.advance([] {}));
    std::uint32_t seen = 0;
    for (std::uint32_t i = 0; calendar.pop() != nullptr; ++i) {
      calendar.peek(2, [&](const Entry& entry) {
        EXPECT_EQ(entry.number, i + 3);
        ++seen;
      });
    }
    EXPECT_EQ(seen, count - 3);
  }
}

// A million entries at random times use hardly more storage than their number.
TEST(Calendar, storage_is_that_of_the_most_entries_that_waited) {
  Calendar<Entry> calendar;
  Delays delays(1);
  for (std::uint32_t i = 0; i < 2000; ++i) { calendar.add(delays.below(1'000'000)).number = i; }
  std::uint32_t left = 1'000'000;
  std::size_t early = 0;
  while (calendar.advance([] {})) {
    while (calendar.pop() != nullptr) {
      if (left == 0) { continue; }
      if (--left == 900'000) { early = calendar.capacity(); }
      calendar.add(calendar.now() + delays.below(1'000'000)).number = left;
    }
  }
  EXPECT_LT(calendar.capacity(), early + early / 4);
}

}  // namespace
}  // namespace orrery::engine::calendar_test
