#include "orrery/simulate/hash_order.hpp"

#include <cstdint>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::simulate {
namespace {

std::vector<std::uint32_t> order(const std::vector<std::uint64_t>& numbers) {
  HashOrder set;
  for (std::size_t i = 0; i < numbers.size(); ++i) { set.insert(numbers[i], static_cast<std::uint32_t>(i)); }
  return set.values();
}

// 13 buckets: 1 and 2 have their own and go to the front, 14 is in the bucket of 1 and goes in front of it.
TEST(HashOrder, a_number_goes_in_front_of_its_bucket_or_of_all) {
  EXPECT_EQ(order({1, 2}), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(order({1, 2, 14}), (std::vector<std::uint32_t>{1, 2, 0}));
}

#ifdef __GLIBCXX__
// The table whose order it is, in the library of the compiler that the original is built with.
TEST(HashOrder, is_the_order_of_the_table_that_it_stands_for) {
  std::uint64_t state = 7;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  for (const std::uint64_t range : {20, 300, 5000, 1'000'000}) {
    HashOrder ours;
    std::unordered_set<std::uint64_t> theirs;
    for (int step = 0; step < 3000; ++step) {
      const std::uint64_t number = draw(range);
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
}  // namespace orrery::simulate
