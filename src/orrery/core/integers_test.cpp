#include "orrery/core/integers.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace orrery::integers_test {
namespace {

TEST(Integers, division_rounds_up) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(8, 4), 2);
  EXPECT_EQ(ceil_div(9, 4), 3);
  EXPECT_EQ(ceil_div(std::uint32_t{1}, std::uint32_t{7}), 1U);
}

// 2^0 = 1, 2^1 = 2, 2^2 = 4 >= 3, 2^10 = 1024 < 1025 <= 2^11.
TEST(Integers, logarithm_rounds_up) {
  EXPECT_EQ(ceil_log2(1), 0U);
  EXPECT_EQ(ceil_log2(2), 1U);
  EXPECT_EQ(ceil_log2(3), 2U);
  EXPECT_EQ(ceil_log2(1024), 10U);
  EXPECT_EQ(ceil_log2(1025), 11U);
}

TEST(Integers, counts_are_exact_up_to_2_to_the_53) { EXPECT_EQ(real(std::int64_t{1} << 53), 9007199254740992.0); }

}  // namespace
}  // namespace orrery::integers_test
