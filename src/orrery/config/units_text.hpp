// Quantities as text with a unit: "80 GiB", "3.35 TB/s", "400 Gb/s", "2 us", "312 TFLOP/s", "1.41 GHz".
//
// Prefixes are explicit: k M G T P E are powers of 1000, Ki Mi Gi Ti Pi Ei powers of 1024; there is no K.
// Bits and bytes are explicit: b is a bit, B a byte. Rates may be in bits ("400 Gb/s", "400 Gbps", "400 Gbit/s") or in
// bytes; sizes are in bytes only, because "80 Gb" of memory is nearly always a mistake.
// Times: ps ns us (also µs) ms s min h d. Operations: FLOP; rates of operations: FLOP/s (also FLOPS).
// A number alone is refused, except 0. Negative, infinite, NaN and unrepresentable values are refused.
#pragma once

#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"

namespace orrery::config {

enum class Dimension { bytes, seconds, flops, bytes_per_second, flops_per_second, hertz };

template <class Q>
struct DimensionOf;  // only the quantities below can be written as text
template <>
struct DimensionOf<Bytes> {
  static constexpr Dimension value = Dimension::bytes;
};
template <>
struct DimensionOf<Seconds> {
  static constexpr Dimension value = Dimension::seconds;
};
template <>
struct DimensionOf<Flops> {
  static constexpr Dimension value = Dimension::flops;
};
template <>
struct DimensionOf<BytesPerSecond> {
  static constexpr Dimension value = Dimension::bytes_per_second;
};
template <>
struct DimensionOf<FlopsPerSecond> {
  static constexpr Dimension value = Dimension::flops_per_second;
};
template <>
struct DimensionOf<Hertz> {
  static constexpr Dimension value = Dimension::hertz;
};

template <class Q>
concept TextQuantity = requires { DimensionOf<Q>::value; };

// "size", "time", "FLOP count", "data rate", "compute rate", "frequency".
[[nodiscard]] std::string_view dimension_name(Dimension dimension);

// The unit to propose for a field that names none: GiB, us, TFLOP, GB/s, TFLOP/s, GHz.
[[nodiscard]] std::string_view usual_unit(Dimension dimension);

// The value in SI base units, rounded once, or a message without a place: `"400" has no unit; did you mean "400
// Gb/s"?`. `proposed_unit` is the unit of that proposal; empty means usual_unit.
[[nodiscard]] tl::expected<double, std::string> parse_quantity(std::string_view text, Dimension dimension,
                                                               std::string_view proposed_unit = {});

// The shortest text in a human unit that parses back to the same double. Finite, non-negative values only.
[[nodiscard]] std::string print_quantity(double value, Dimension dimension);

template <TextQuantity Q>
[[nodiscard]] tl::expected<Q, std::string> parse_quantity(std::string_view text, std::string_view proposed_unit = {}) {
  return parse_quantity(text, DimensionOf<Q>::value, proposed_unit).map([](double value) { return Q(value); });
}

template <TextQuantity Q>
[[nodiscard]] std::string print_quantity(Q quantity) {
  return print_quantity(quantity.value(), DimensionOf<Q>::value);
}

// For reports: rounded to `digits` significant digits (3 or 4), trailing zeros kept, sign and infinity allowed.
[[nodiscard]] std::string format_bytes(Bytes size, int digits = 3);           // "63.2 GiB"
[[nodiscard]] std::string format_seconds(Seconds time, int digits = 3);       // "312 us", "5.43 s", "2.10 h", "12.0 d"
[[nodiscard]] std::string format_flops(Flops count, int digits = 3);          // "1.20 PFLOP"
[[nodiscard]] std::string format_rate(BytesPerSecond rate, int digits = 3);   // "450 GB/s"
[[nodiscard]] std::string format_rate(FlopsPerSecond rate, int digits = 3);   // "312 TFLOP/s"
[[nodiscard]] std::string format_frequency(Hertz frequency, int digits = 3);  // "1.41 GHz"
[[nodiscard]] std::string format_count(double count, int digits = 3);         // "8.03 G" (parameters, tokens), "512"

}  // namespace orrery::config
