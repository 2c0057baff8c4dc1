// Quantities for people to read in reports: rounded, in the unit that keeps the number between 1 and 1000 (or 1024).
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"

namespace orrery::config {

namespace {

// `value` >= 0 to `digits` significant digits; whole numbers are never cut before the point.
std::string significant(double value, int digits) {
  if (value == 0.0) { return "0"; }
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  return fmt::format("{:.{}f}", value, std::max(0, digits - 1 - exponent));
}

// The number that `significant` writes. Not std::stod: a host process may have set another decimal point.
double rounded(double value, int digits) {
  const std::string text = significant(value, digits);
  double number = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Steps up the prefixes until the rounded number is below `base`.
std::string scaled(double value, double base, std::span<const std::string_view> prefixes, std::string_view unit,
                   int digits) {
  if (std::isnan(value)) { return fmt::format("nan {}", unit); }
  const std::string_view sign = value < 0 ? "-" : "";
  value = std::abs(value);
  if (std::isinf(value)) { return fmt::format("{}inf {}", sign, unit); }
  std::size_t i = 0;
  while (i + 1 < prefixes.size() && rounded(value, digits) >= base) {
    value /= base;
    ++i;
  }
  const bool whole = i == 0 && value == std::floor(value);
  const std::string number = whole ? fmt::format("{:.0f}", value) : significant(value, digits);
  const std::string_view gap = prefixes[i].empty() && unit.empty() ? "" : " ";
  return fmt::format("{}{}{}{}{}", sign, number, gap, prefixes[i], unit);
}

constexpr std::array<std::string_view, 7> kDecimalSymbols{"", "k", "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinarySymbols{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

std::string decimal(double value, std::string_view unit, int digits) {
  return scaled(value, 1000.0, kDecimalSymbols, unit, digits);
}

}  // namespace

std::string format_bytes(Bytes size, int digits) { return scaled(size.value(), 1024.0, kBinarySymbols, "B", digits); }
std::string format_flops(Flops count, int digits) { return decimal(count.value(), "FLOP", digits); }
std::string format_rate(BytesPerSecond rate, int digits) { return decimal(rate.value(), "B/s", digits); }
std::string format_rate(FlopsPerSecond rate, int digits) { return decimal(rate.value(), "FLOP/s", digits); }
std::string format_frequency(Hertz frequency, int digits) { return decimal(frequency.value(), "Hz", digits); }
std::string format_count(double count, int digits) { return decimal(count, "", digits); }

std::string format_seconds(Seconds time, int digits) {
  const double seconds = std::abs(time.value());
  if (!std::isfinite(time.value()) || seconds == 0.0) {
    return scaled(time.value(), 1000.0, kDecimalSymbols, "s", digits);
  }
  const std::string_view sign = time.value() < 0 ? "-" : "";
  const auto text = [&](double value, std::string_view unit) {
    return fmt::format("{}{} {}", sign, significant(value, digits), unit);
  };
  if (seconds >= 172800.0) { return text(seconds / 86400.0, "d"); }
  if (seconds >= 7200.0) { return text(seconds / 3600.0, "h"); }
  if (seconds >= 120.0) { return text(seconds / 60.0, "min"); }
  struct Step {
    double scale;
    std::string_view unit;
  };
  for (const auto& [scale, unit] : {Step{1e12, "ps"}, Step{1e9, "ns"}, Step{1e6, "us"}, Step{1e3, "ms"}}) {
    if (rounded(seconds * scale, digits) < 1000.0) { return text(seconds * scale, unit); }
  }
  return text(seconds, "s");
}

}  // namespace orrery::config
