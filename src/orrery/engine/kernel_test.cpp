#include "orrery/engine/kernel.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::engine::kernel_test {
namespace {

struct Numbered {
  std::uint32_t number = 0;
};

using Log = std::vector<std::pair<Time, std::uint32_t>>;

TEST(Kernel, events_of_one_time_happen_as_registered_and_times_ascend) {
  Kernel<Numbered> kernel(0);
  std::uint32_t number = 0;
  for (const Time time : {70000, 3, 256, 3, 255, 70000}) { kernel.at(time, {number++}); }
  Log log;
  kernel.run([&](const Numbered& event) { log.emplace_back(kernel.now(), event.number); });
  EXPECT_EQ(log, (Log{{3, 1}, {3, 3}, {255, 4}, {256, 2}, {70000, 0}, {70000, 5}}));
  EXPECT_EQ(kernel.events(), 6U);
}

TEST(Kernel, events_added_for_the_current_time_are_handled_at_that_time) {
  Kernel<Numbered> kernel(0);
  kernel.at(5, {0});
  Log log;
  kernel.run([&](const Numbered& event) {
    log.emplace_back(kernel.now(), event.number);
    if (event.number < 3) { kernel.at(5, {event.number + 1}); }
  });
  EXPECT_EQ(log, (Log{{5, 0}, {5, 1}, {5, 2}, {5, 3}}));
}

// Lane 0 registers first, so all of lane 0's time 4 comes before the rest, although 2 was registered before 3.
TEST(Kernel, events_of_a_lane_stay_together_at_the_place_of_the_first) {
  Kernel<Numbered> kernel(2);
  kernel.after(0, 4, {1});
  kernel.at(4, {2});
  kernel.after(1, 4, {3});
  kernel.after(0, 4, {4});
  Log log;
  kernel.run([&](const Numbered& event) { log.emplace_back(kernel.now(), event.number); });
  EXPECT_EQ(log, (Log{{4, 1}, {4, 4}, {4, 2}, {4, 3}}));
}

TEST(Kernel, an_event_added_after_those_of_its_lane_and_time_were_handled_comes_last) {
  Kernel<Numbered> kernel(1);
  kernel.after(0, 1, {1});
  kernel.at(1, {2});
  kernel.at(1, {3});
  Log log;
  kernel.run([&](const Numbered& event) {
    log.emplace_back(kernel.now(), event.number);
    if (event.number == 1) { kernel.after(0, 0, {10}); }  // its lane and time are being handled
    if (event.number == 2) { kernel.after(0, 0, {11}); }  // they were handled: after 3
  });
  EXPECT_EQ(log, (Log{{1, 1}, {1, 10}, {1, 2}, {1, 3}, {1, 11}}));
}

// Reference implementation of the same rules with maps and lists.
class ReferenceKernel {
 public:
  void at(Time time, std::function<void()> call) { buckets_[time].push_back(std::move(call)); }
  void after(std::uint32_t lane, Time delay, std::function<void()> call) {
    const auto key = std::make_pair(lane, now_ + delay);
    const bool is_new = !lists_.contains(key);
    lists_[key].push_back(std::move(call));
    if (is_new) {
      at(now_ + delay, [this, key] {
        for (auto i = lists_[key].begin(); i != lists_[key].end(); ++i) { (*i)(); }
        lists_.erase(key);
      });
    }
  }
  void run() {
    while (!buckets_.empty()) {
      now_ = buckets_.begin()->first;
      auto& bucket = buckets_.begin()->second;
      for (auto i = bucket.begin(); i != bucket.end(); ++i) { (*i)(); }
      buckets_.erase(buckets_.begin());
    }
  }
  [[nodiscard]] Time now() const { return now_; }

 private:
  Time now_ = 0;
  std::map<Time, std::list<std::function<void()>>> buckets_;
  std::map<std::pair<std::uint32_t, Time>, std::list<std::function<void()>>> lists_;
};

// The events that event `number` registers: up to three, pseudo-random functions of the number.
struct Following {
  bool in_lane;
  std::uint32_t lane;
  Time delay;
};
std::vector<Following> following(std::uint32_t number, Time span) {
  std::uint64_t state = number * 0x9E3779B97F4A7C15U + 12345;
  const auto random_below = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  std::vector<Following> result(number < 20000 ? random_below(4) : 0);
  for (Following& event : result) {
    event = {random_below(3) != 0, static_cast<std::uint32_t>(random_below(3)),
             random_below(5) == 0 ? random_below(span * span) : random_below(span)};
  }
  return result;
}

TEST(Kernel, agrees_with_the_reference_implementation) {
  for (const Time span : {2, 40, 3000}) {
    Log log, expected;
    std::uint32_t made = 200;

    Kernel<Numbered> kernel(3);
    const auto handle = [&](const Numbered& event) {
      log.emplace_back(kernel.now(), event.number);
      for (const Following& next : following(event.number, span)) {
        next.in_lane ? kernel.after(next.lane, next.delay, {made}) : kernel.at(kernel.now() + next.delay, {made});
        ++made;
      }
    };
    for (std::uint32_t i = 0; i < 200; ++i) { kernel.after(i % 3, i * span % 97, {i}); }
    kernel.run(handle);

    ReferenceKernel reference;
    made = 200;
    std::function<void(std::uint32_t)> call = [&](std::uint32_t number) {
      expected.emplace_back(reference.now(), number);
      for (const Following& next : following(number, span)) {
        auto later = [&call, n = made] { call(n); };
        next.in_lane ? reference.after(next.lane, next.delay, later)
                     : reference.at(reference.now() + next.delay, later);
        ++made;
      }
    };
    for (std::uint32_t i = 0; i < 200; ++i) {
      reference.after(i % 3, i * span % 97, [&call, i] { call(i); });
    }
    reference.run();

    EXPECT_GT(log.size(), 10000U);
    EXPECT_EQ(log, expected) << span;
  }
}

TEST(Kernel, storage_is_reused) {
  Kernel<Numbered> kernel(1);
  kernel.at(0, {1000});
  const std::size_t before = kernel.capacity();
  kernel.run([&](const Numbered& event) {
    if (event.number > 0) { kernel.after(0, 300, {event.number - 1}); }
  });
  EXPECT_EQ(kernel.now(), 300U * 1000U);
  EXPECT_LE(kernel.capacity(), before + 2);
}

TEST(Kernel, a_time_before_now_is_rejected) {
  Kernel<Numbered> kernel(0);
  kernel.at(10, {0});
  kernel.run([&](const Numbered&) { EXPECT_THROW(kernel.at(9, {0}), InternalError); });
}

}  // namespace
}  // namespace orrery::engine::kernel_test
