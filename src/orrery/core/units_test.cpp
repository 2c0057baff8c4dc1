#include "orrery/core/units.hpp"

#include <type_traits>

#include <gtest/gtest.h>

namespace orrery::units_test {
namespace {

static_assert(sizeof(Bytes) == sizeof(double));
static_assert(std::is_trivially_copyable_v<Seconds>);
static_assert(std::is_standard_layout_v<FlopsPerSecond>);

static_assert(std::is_same_v<decltype(Bytes() / BytesPerSecond()), Seconds>);
static_assert(std::is_same_v<decltype(Flops() / FlopsPerSecond()), Seconds>);
static_assert(std::is_same_v<decltype(Bytes() / Seconds()), BytesPerSecond>);
static_assert(std::is_same_v<decltype(FlopsPerSecond() * Seconds()), Flops>);
static_assert(std::is_same_v<decltype(BytesPerSecond() * Seconds()), Bytes>);
static_assert(std::is_same_v<decltype(Bytes() / Bytes()), double>);
static_assert(std::is_same_v<decltype(Hertz() * Seconds()), double>);

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>, "bytes and seconds must not add");
static_assert(!Addable<Bytes, double>, "a bare number is not a size");
static_assert(!std::is_convertible_v<double, Bytes>, "a bare number is not a size");
static_assert(!std::is_convertible_v<Bytes, double>);
static_assert(!std::is_convertible_v<Seconds, Hertz>);

TEST(units, bytes_over_bandwidth_is_time) {
  // 80 GB at 2 GB/s is 40 s.
  EXPECT_EQ(80_GB / 2_GBps, 40_s);
}

TEST(units, a_gigabit_per_second_is_an_eighth_of_a_gigabyte_per_second) { EXPECT_EQ(400_Gbps, 50_GBps); }

TEST(units, binary_literals_are_powers_of_1024) {
  EXPECT_EQ((1_KiB).value(), 1024.0);
  EXPECT_EQ(1024 * 1_KiB, 1_MiB);
  EXPECT_EQ(1024 * 1_MiB, 1_GiB);
}

TEST(units, comparison_orders_by_value) {
  EXPECT_LT(1_ms, 1_s);
  EXPECT_GE(1_s, 1000_ms);
  EXPECT_NE(1_GiB, 1_GB);
  EXPECT_EQ(max(1_us, 2_us), 2_us);
  EXPECT_EQ(min(1_us, 2_us), 1_us);
}

TEST(units, arithmetic_in_place_equals_arithmetic) {
  Seconds time = 3_s;
  time += 2_s;
  time -= 1_s;
  time *= 6.0;
  time /= 3.0;
  EXPECT_EQ(time, 8_s);  // (3 + 2 - 1) * 6 / 3
  EXPECT_EQ(-time, 0_s - 8_s);
}

TEST(units, infinity_is_not_finite) {
  EXPECT_FALSE(is_finite(infinite<Seconds>()));
  EXPECT_TRUE(is_finite(1_s));
}

}  // namespace
}  // namespace orrery::units_test
