// Integer arithmetic that several rooms need, and the conversion of counts to floating point.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace orrery {

// a / b rounded up, for a >= 0 and b > 0.
template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

// The smallest k with 2^k >= n, for n >= 1.
[[nodiscard]] constexpr std::uint32_t ceil_log2(std::uint64_t n) {
  return static_cast<std::uint32_t>(std::bit_width(n - 1));
}

// A count as an index.
[[nodiscard]] constexpr std::size_t to_index(std::int64_t i) { return static_cast<std::size_t>(i); }

// A count in a formula. Exact up to 2^53.
[[nodiscard]] constexpr double real(std::int64_t count) { return static_cast<double>(count); }

}  // namespace orrery
