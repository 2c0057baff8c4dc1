#include "orrery/engine/divisor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace orrery::engine::test::divisor_test {
namespace {

TEST(Divisor, quotient_and_remainder_are_those_of_the_operators) {
  std::vector<std::uint32_t> numbers = {0, 1, 2, 3, 5, 7, 255, 256, 257, 65535, 65536, 65537};
  for (std::uint32_t i = 0; i < 40; ++i) { numbers.push_back(0xFFFFFFFF - i * i * i); }
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) { numbers.push_back(static_cast<std::uint32_t>(random() >> (random() % 32))); }
  for (const std::uint32_t divisor : numbers) {
    if (divisor == 0) { continue; }
    const Divisor by(divisor);
    EXPECT_EQ(by.value(), divisor);
    for (const std::uint32_t number : numbers) {
      ASSERT_EQ(by.quotient(number), number / divisor) << number << " / " << divisor;
      ASSERT_EQ(by.remainder(number), number % divisor) << number << " % " << divisor;
    }
  }
}

}  // namespace
}  // namespace orrery::engine::test::divisor_test
