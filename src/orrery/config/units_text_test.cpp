#include "orrery/config/units_text.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::config::units_text_test {
namespace {

template <class Q>
Q parsed(std::string_view text) {
  const auto value = parse_quantity<Q>(text);
  EXPECT_TRUE(value.has_value()) << text << ": " << (value ? "" : value.error());
  return value.value_or(Q(-1));
}

template <class Q>
std::string complaint(std::string_view text, std::string_view unit = {}) {
  const auto value = parse_quantity<Q>(text, unit);
  EXPECT_FALSE(value.has_value()) << text;
  return value ? "" : value.error();
}

TEST(parse_quantity, binary_prefixes_are_powers_of_1024) {
  EXPECT_EQ(parsed<Bytes>("80 GiB"), Bytes(85899345920.0));  // 80 * 1024^3
  EXPECT_EQ(parsed<Bytes>("1 KiB"), Bytes(1024));
  EXPECT_EQ(parsed<Bytes>("0.5 MiB"), Bytes(524288));
}

TEST(parse_quantity, decimal_prefixes_are_powers_of_1000) {
  EXPECT_EQ(parsed<Bytes>("80 GB"), Bytes(80e9));
  EXPECT_EQ(parsed<BytesPerSecond>("3.35 TB/s"), BytesPerSecond(3.35e12));
  EXPECT_EQ(parsed<FlopsPerSecond>("312 TFLOP/s"), FlopsPerSecond(312e12));
  EXPECT_EQ(parsed<FlopsPerSecond>("989.5 TFLOPS"), FlopsPerSecond(989.5e12));
  EXPECT_EQ(parsed<Flops>("2 PFLOP"), Flops(2e15));
  EXPECT_EQ(parsed<Hertz>("1.41 GHz"), Hertz(1.41e9));
}

TEST(parse_quantity, eight_bits_make_a_byte) {
  EXPECT_EQ(parsed<BytesPerSecond>("400 Gb/s"), BytesPerSecond(50e9));
  EXPECT_EQ(parsed<BytesPerSecond>("400 Gbps"), BytesPerSecond(50e9));
  EXPECT_EQ(parsed<BytesPerSecond>("400 Gbit/s"), BytesPerSecond(50e9));
  EXPECT_EQ(parsed<BytesPerSecond>("8 Kib/s"), BytesPerSecond(1024));
}

TEST(parse_quantity, reads_times_from_picoseconds_to_days) {
  EXPECT_EQ(parsed<Seconds>("2 us"), Seconds(2e-6));
  EXPECT_EQ(parsed<Seconds>("2 \u00b5s"), Seconds(2e-6));
  EXPECT_EQ(parsed<Seconds>("2 \u03bcs"), Seconds(2e-6));
  EXPECT_EQ(parsed<Seconds>("3 ps"), Seconds(3e-12));
  EXPECT_EQ(parsed<Seconds>("700 ns"), Seconds(700e-9));
  EXPECT_EQ(parsed<Seconds>("1.5 ms"), Seconds(1.5e-3));
  EXPECT_EQ(parsed<Seconds>("2 min"), Seconds(120));
  EXPECT_EQ(parsed<Seconds>("1.5 h"), Seconds(5400));
  EXPECT_EQ(parsed<Seconds>("2 d"), Seconds(172800));
}

TEST(parse_quantity, space_and_plus_and_exponents_are_free) {
  EXPECT_EQ(parsed<Bytes>("80GiB"), parsed<Bytes>("  +80   GiB "));
  EXPECT_EQ(parsed<Bytes>("1e3 B"), Bytes(1000));
  EXPECT_EQ(parsed<Bytes>("1.5E+3B"), Bytes(1500));
  EXPECT_EQ(parsed<Bytes>("5EB"), Bytes(5e18));  // E without digits is exa
  EXPECT_EQ(parsed<Bytes>("5e1EB"), Bytes(5e19));
  EXPECT_EQ(parsed<Bytes>(".5 kB"), Bytes(500));
  EXPECT_EQ(parsed<Bytes>("5. kB"), Bytes(5000));
}

TEST(parse_quantity, zero_needs_no_unit) {
  EXPECT_EQ(parsed<Seconds>("0"), Seconds(0));
  EXPECT_EQ(parsed<Bytes>("0.0"), Bytes(0));
  EXPECT_EQ(parsed<Bytes>("0 GiB"), Bytes(0));
}

TEST(parse_quantity, a_bare_number_gets_the_field_s_unit_proposed) {
  EXPECT_EQ(complaint<BytesPerSecond>("400", "Gb/s"), "\"400\" has no unit; did you mean \"400 Gb/s\"?");
  EXPECT_EQ(complaint<BytesPerSecond>("400"), "\"400\" has no unit; did you mean \"400 GB/s\"?");
  EXPECT_EQ(complaint<Seconds>("2.5"), "\"2.5\" has no unit; did you mean \"2.5 us\"?");
}

TEST(parse_quantity, another_dimension_is_named) {
  EXPECT_EQ(complaint<Seconds>("80 GiB"), "\"80 GiB\" is a size, not a time; write for example \"2 us\"");
  EXPECT_EQ(complaint<BytesPerSecond>("50 GB"), "\"50 GB\" is a size, not a data rate; did you mean \"50 GB/s\"?");
  EXPECT_EQ(complaint<Bytes>("50 GB/s"), "\"50 GB/s\" is a data rate, not a size; did you mean \"50 GB\"?");
  EXPECT_EQ(complaint<FlopsPerSecond>("312 TFLOP"),
            "\"312 TFLOP\" is a FLOP count, not a compute rate; did you mean \"312 TFLOP/s\"?");
  EXPECT_EQ(complaint<BytesPerSecond>("1.41 GHz", "Gb/s"),
            "\"1.41 GHz\" is a frequency, not a data rate; write for example \"400 Gb/s\"");
}

TEST(parse_quantity, a_misspelt_unit_gets_the_nearest_ones) {
  EXPECT_EQ(complaint<Bytes>("80 GiBs"), "\"80 GiBs\" has an unknown unit \"GiBs\"; did you mean \"80 GiB\"?");
  EXPECT_EQ(complaint<Bytes>("80 KB"), "\"80 KB\" has an unknown unit \"KB\"; did you mean \"80 kB\" or \"80 KiB\"?");
  EXPECT_EQ(complaint<Bytes>("80 gb"), "\"80 gb\" has an unknown unit \"gb\"; did you mean \"80 GB\"?");
  EXPECT_EQ(complaint<Bytes>("80 Gb"), "\"80 Gb\" has an unknown unit \"Gb\"; did you mean \"80 GB\"?");
  EXPECT_EQ(complaint<BytesPerSecond>("400 gb/s"),
            "\"400 gb/s\" has an unknown unit \"gb/s\"; did you mean \"400 GB/s\" or \"400 Gb/s\"?");
  EXPECT_EQ(complaint<BytesPerSecond>("400 Gb"), "\"400 Gb\" has an unknown unit \"Gb\"; did you mean \"400 Gb/s\"?");
  EXPECT_EQ(complaint<FlopsPerSecond>("312 TFLOPs"),
            "\"312 TFLOPs\" has an unknown unit \"TFLOPs\"; did you mean \"312 TFLOPS\"?");
  EXPECT_EQ(complaint<Bytes>("80 parsec"),
            "\"80 parsec\" has an unknown unit \"parsec\"; write for example \"80 GiB\"");
  EXPECT_EQ(complaint<Bytes>("1,000 GB"),
            "\"1,000 GB\" must be written without separators between digits; write for example \"80 GiB\"");
}

TEST(parse_quantity, negative_and_not_finite_and_unrepresentable_are_refused) {
  EXPECT_EQ(complaint<Seconds>("-5 us"), "\"-5 us\" is negative; a time is at least 0");
  EXPECT_EQ(complaint<Seconds>("nan s"), "\"nan s\" is not a finite number; write for example \"2 us\"");
  EXPECT_EQ(complaint<Seconds>(".inf"), "\".inf\" is not a finite number; write for example \"2 us\"");
  EXPECT_EQ(complaint<Seconds>("-inf"), "\"-inf\" is not a finite number; write for example \"2 us\"");
  EXPECT_EQ(complaint<Seconds>("1e400 s"), "\"1e400 s\" is too large");
  EXPECT_EQ(complaint<Bytes>("1e308 GB"), "\"1e308 GB\" is too large");
  EXPECT_EQ(complaint<Bytes>("1e308 GiB"), "\"1e308 GiB\" is too large");
  EXPECT_EQ(complaint<Bytes>("1e99999999999999999999 B"), "\"1e99999999999999999999 B\" is too large");
  EXPECT_EQ(complaint<Seconds>("1e-400 s"), "\"1e-400 s\" is too small; write 0");
}

TEST(parse_quantity, what_is_not_a_number_is_refused) {
  EXPECT_EQ(complaint<Bytes>("lots"), "\"lots\" is not a size; write for example \"80 GiB\"");
  EXPECT_EQ(complaint<Bytes>(""), "has no value; write for example \"80 GiB\"");
  EXPECT_EQ(complaint<Bytes>("."), "\".\" is not a size; write for example \"80 GiB\"");
  EXPECT_EQ(complaint<Bytes>("--5 GB"), "\"--5 GB\" is not a size; write for example \"80 GiB\"");
  EXPECT_EQ(complaint<Bytes>("GiB"), "\"GiB\" is not a size; write for example \"80 GiB\"");
}

TEST(print_quantity, takes_the_unit_that_people_use) {
  EXPECT_EQ(print_quantity(80_GiB), "80 GiB");
  EXPECT_EQ(print_quantity(80_GB), "80 GB");
  EXPECT_EQ(print_quantity(BytesPerSecond(3.35e12)), "3.35 TB/s");
  EXPECT_EQ(print_quantity(400_Gbps), "50 GB/s");
  EXPECT_EQ(print_quantity(Seconds(2e-6)), "2 us");
  EXPECT_EQ(print_quantity(Seconds(0.25)), "250 ms");
  EXPECT_EQ(print_quantity(Seconds(86400)), "86400 s");
  EXPECT_EQ(print_quantity(FlopsPerSecond(312e12)), "312 TFLOP/s");
  EXPECT_EQ(print_quantity(Flops(6e23)), "600000 EFLOP");
  EXPECT_EQ(print_quantity(Hertz(1.41e9)), "1.41 GHz");
  EXPECT_EQ(print_quantity(Bytes(512)), "512 B");
  EXPECT_EQ(print_quantity(Bytes(1536)), "1.5 KiB");
  EXPECT_EQ(print_quantity(Bytes(1000)), "1 kB");
  EXPECT_EQ(print_quantity(Bytes(0)), "0 B");
  EXPECT_EQ(print_quantity(Bytes(0.25)), "0.25 B");
}

// Every finite non-negative double, subnormals included, by its bits.
rc::Gen<double> any_size() {
  return rc::gen::map(rc::gen::inRange<std::uint64_t>(0, 0x7FF0000000000000ULL),
                      [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
}

// Numbers as people write them: a few digits and a power of ten or two.
rc::Gen<double> usual_size() {
  return rc::gen::apply([](int digits, int ten, int two) { return std::ldexp(digits * std::pow(10.0, ten), two); },
                        rc::gen::inRange(0, 10'000), rc::gen::inRange(-12, 19), rc::gen::inRange(0, 60));
}

void check_round_trip(double value) {
  for (const Dimension dimension : {Dimension::bytes, Dimension::seconds, Dimension::flops, Dimension::bytes_per_second,
                                    Dimension::flops_per_second, Dimension::hertz}) {
    const std::string text = print_quantity(value, dimension);
    const auto back = parse_quantity(text, dimension);
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == value);
  }
}

RC_GTEST_PROP(print_quantity, parses_back_to_the_same_double, ()) { check_round_trip(*any_size()); }
RC_GTEST_PROP(print_quantity, parses_back_for_usual_numbers, ()) { check_round_trip(*usual_size()); }

RC_GTEST_PROP(parse_quantity, never_gives_a_negative_or_infinite_value, (const std::string& text)) {
  for (const std::string_view suffix : {"", " GiB", " us", "Gb/s"}) {
    const auto value = parse_quantity(text + std::string(suffix), Dimension::bytes_per_second);
    RC_ASSERT(!value || (std::isfinite(*value) && *value >= 0.0));
  }
}

TEST(format, sizes_are_binary_with_three_digits) {
  EXPECT_EQ(format_bytes(Bytes(63.2 * 1073741824.0)), "63.2 GiB");
  EXPECT_EQ(format_bytes(80_GiB), "80.0 GiB");
  EXPECT_EQ(format_bytes(80_GiB, 4), "80.00 GiB");
  EXPECT_EQ(format_bytes(Bytes(512)), "512 B");
  EXPECT_EQ(format_bytes(Bytes(1012.0 * 1073741824.0)), "1012 GiB");  // below 1024: not 0.988 TiB
  EXPECT_EQ(format_bytes(Bytes(1023.9 * 1073741824.0)), "1.00 TiB");  // would round to 1024 GiB
  EXPECT_EQ(format_bytes(Bytes(0)), "0 B");
  EXPECT_EQ(format_bytes(Bytes(-2048)), "-2.00 KiB");
}

TEST(format, times_run_from_picoseconds_to_days) {
  EXPECT_EQ(format_seconds(Seconds(5.43)), "5.43 s");
  EXPECT_EQ(format_seconds(Seconds(312e-6)), "312 us");
  EXPECT_EQ(format_seconds(Seconds(0.0213456)), "21.3 ms");
  EXPECT_EQ(format_seconds(Seconds(0.9996)), "1.00 s");  // would round to 1000 ms
  EXPECT_EQ(format_seconds(Seconds(7e-10)), "700 ps");
  EXPECT_EQ(format_seconds(Seconds(119.0)), "119 s");
  EXPECT_EQ(format_seconds(Seconds(150.0)), "2.50 min");
  EXPECT_EQ(format_seconds(Seconds(7560.0)), "2.10 h");
  EXPECT_EQ(format_seconds(Seconds(12 * 86400.0)), "12.0 d");
  EXPECT_EQ(format_seconds(Seconds(0)), "0 s");
  EXPECT_EQ(format_seconds(Seconds(-0.002)), "-2.00 ms");
  EXPECT_EQ(format_seconds(infinite<Seconds>()), "inf s");
}

TEST(format, rates_and_counts_are_decimal) {
  EXPECT_EQ(format_rate(450_GBps), "450 GB/s");
  EXPECT_EQ(format_rate(FlopsPerSecond(989.5e12)), "990 TFLOP/s");
  EXPECT_EQ(format_rate(FlopsPerSecond(989.5e12), 4), "989.5 TFLOP/s");
  EXPECT_EQ(format_rate(BytesPerSecond(999.96e9)), "1.00 TB/s");
  EXPECT_EQ(format_flops(Flops(1.2e15)), "1.20 PFLOP");
  EXPECT_EQ(format_frequency(Hertz(1.41e9)), "1.41 GHz");
  EXPECT_EQ(format_count(8.03e9), "8.03 G");
  EXPECT_EQ(format_count(512), "512");
  EXPECT_EQ(format_count(0.25), "0.250");
}

RC_GTEST_PROP(format, never_moves_a_value_by_more_than_half_a_percent, ()) {
  const double value = *rc::gen::suchThat(usual_size(), [](double v) { return v > 1.0 && v < 1e20; });
  const auto back = parse_quantity(format_rate(BytesPerSecond(value)), Dimension::bytes_per_second);
  RC_ASSERT(back.has_value());
  RC_ASSERT(std::abs(*back - value) <= 0.005 * value + 1e-9 * value);
}

}  // namespace
}  // namespace orrery::config::units_text_test
