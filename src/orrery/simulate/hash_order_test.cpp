#include "orrery/simulate/hash_order.hpp"

#include <cstdint>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::simulate::hash_order_test {
namespace {

std::vector<std::uint32_t> order(const std::vector<std::uint64_t>& numbers) {
  HashOrder set;
  for (std::size_t i = 0; i < numbers.size(); ++i) { set.insert(numbers[i], static_cast<std::uint32_t>(i)); }
  return set.values();
}

// 13 buckets: 1 and 2 are alone in their buckets and are inserted at the front; 14 is in the bucket of 1, in front of
// it.
TEST(HashOrder, a_number_is_inserted_in_front_of_its_bucket_or_of_the_list) {
  EXPECT_EQ(order({1, 2}), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(order({1, 2, 14}), (std::vector<std::uint32_t>{1, 2, 0}));
}

#ifdef __GLIBCXX__
// Compared with the hash table of the library with which ASTRA-sim is built.
TEST(HashOrder, is_the_order_of_libstdcxx) {
  std::uint64_t state = 7;
  const auto random_below = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  for (const std::uint64_t range : {20, 300, 5000, 1'000'000}) {
    HashOrder ours;
    std::unordered_set<std::uint64_t> theirs;
    for (int step = 0; step < 3000; ++step) {
      const std::uint64_t number = random_below(range);
      if (theirs.contains(number)) {
        theirs.erase(number);
        ours.erase(number);
      } else {
        theirs.insert(number);
        ours.insert(number, static_cast<std::uint32_t>(number));
      }
      if (step % 50 != 0) { continue; }
      EXPECT_EQ(ours.values(), std::vector<std::uint32_t>(theirs.begin(), theirs.end())) << range << " " << step;
      EXPECT_EQ(ours.empty(), theirs.empty());
    }
  }
}
#endif

}  // namespace
}  // namespace orrery::simulate::hash_order_test
