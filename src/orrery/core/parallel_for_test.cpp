#include "orrery/core/parallel_for.hpp"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::parallel_for_test {
namespace {

std::vector<double> squares(std::size_t count, int threads) {
  std::vector<double> out(count, -1.0);
  parallel_for(count, threads, [&](std::size_t i) { out[i] = static_cast<double>(i) * static_cast<double>(i); });
  return out;
}

TEST(parallel_for, result_is_the_same_for_any_number_of_threads) {
  const auto serial = squares(10'000, 1);
  EXPECT_EQ(serial[99], 9801.0);
  for (const int threads : {0, 2, 3, 8}) { EXPECT_EQ(squares(10'000, threads), serial) << threads; }
}

TEST(parallel_for, calls_each_index_once) {
  std::vector<std::atomic<int>> calls(1000);
  parallel_for(calls.size(), 4, [&](std::size_t i) { ++calls[i]; });
  for (const auto& count : calls) { EXPECT_EQ(count, 1); }
}

TEST(parallel_for, with_count_zero_calls_nothing) {
  for (const int threads : {0, 1, 2}) {
    parallel_for(0, threads, [](std::size_t) { FAIL(); });
  }
}

TEST(parallel_for, rethrows_what_a_body_throws) {
  const auto thrower = [](std::size_t i) {
    if (i == 37) { throw std::runtime_error("at 37"); }
  };
  for (const int threads : {1, 4}) {
    try {
      parallel_for(100, threads, thrower);
      ADD_FAILURE() << "no exception with " << threads << " threads";
    } catch (const std::runtime_error& error) { EXPECT_STREQ(error.what(), "at 37"); }
  }
}

TEST(parallel_for, may_be_nested) {
  std::vector<int> sums(20, 0);
  parallel_for(sums.size(), 2, [&](std::size_t i) {
    std::vector<int> parts(50, 0);
    parallel_for(parts.size(), 2, [&](std::size_t j) { parts[j] = static_cast<int>(j); });
    for (const int part : parts) { sums[i] += part; }
  });
  for (const int sum : sums) { EXPECT_EQ(sum, 1225); }  // 49 * 50 / 2
}

TEST(parallel_for, hardware_threads_is_at_least_one) { EXPECT_GE(hardware_threads(), 1); }

}  // namespace
}  // namespace orrery::parallel_for_test
