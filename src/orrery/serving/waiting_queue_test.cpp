// The queue against a sorted list.
#include "orrery/serving/waiting_queue.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::serving::waiting_queue_test {
namespace {

using Item = std::pair<std::int32_t, std::int64_t>;  // class, place in it

// Any sequence of insertions at both ends, in order, removals and searches leaves what a plain list has.
RC_GTEST_PROP(WaitingQueue, is_a_list_by_class, ()) {
  WaitingQueue<Item> queue;
  std::vector<Item> list;
  const auto first_of = [&](std::int32_t priority) {
    return std::find_if(list.begin(), list.end(), [&](const Item& item) { return item.first >= priority; });
  };
  const auto end_of = [&](std::int32_t priority) {
    return std::find_if(list.begin(), list.end(), [&](const Item& item) { return item.first > priority; });
  };
  const auto count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    const Item item{*rc::gen::inRange<std::int32_t>(0, 4), *rc::gen::inRange<std::int64_t>(0, 20)};
    const auto odd = [](const Item& one) { return one.second % 2 == 1; };
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        queue.push_front(item.first, item);
        list.insert(first_of(item.first), item);
        break;
      case 1:
        queue.push_back(item.first, item);
        list.insert(end_of(item.first), item);
        break;
      case 2:
        if (!list.empty()) {
          queue.pop_front();
          list.erase(list.begin());
        }
        break;
      case 3:
        queue.erase_if(odd);
        std::erase_if(list, odd);
        break;
      default: {
        const auto kept = static_cast<std::size_t>(item.second);
        const Item* found = queue.find_last(kept, odd);
        auto expected = list.size();
        while (expected > kept && !odd(list[expected - 1])) { --expected; }
        RC_ASSERT((found != nullptr) == (expected > kept));
        if (found != nullptr) { RC_ASSERT(*found == list[expected - 1]); }
      }
    }
    RC_ASSERT(queue.size() == list.size());
    RC_ASSERT(queue.empty() == list.empty());
    if (!list.empty()) { RC_ASSERT(queue.front() == list.front()); }
  }
}

// In order within a class; equal ones as they came.
TEST(WaitingQueue, inserts_in_order_within_a_class) {
  WaitingQueue<Item> queue;
  const auto before = [](const Item& a, const Item& b) { return a.second / 10 < b.second / 10; };
  for (const Item& item : {Item{1, 30}, Item{0, 50}, Item{1, 10}, Item{1, 31}, Item{0, 20}}) {
    queue.insert(item.first, item, before);
  }
  for (const Item& expected : {Item{0, 20}, Item{0, 50}, Item{1, 10}, Item{1, 30}, Item{1, 31}}) {
    EXPECT_EQ(queue.front(), expected);
    queue.pop_front();
  }
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace orrery::serving::waiting_queue_test
