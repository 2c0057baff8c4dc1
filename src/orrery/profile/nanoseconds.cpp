#include <limits>

#include "orrery/profile/kineto_read.hpp"

namespace orrery::profile {

namespace {

constexpr int kDigits = 3;  // of nanoseconds in a microsecond

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;  // value = digits x 10^exponent
  int exponent = 0;
};

constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

// Digits before and after the point; those that do not fit are dropped behind the point and refused before it.
bool read_digits(std::string_view text, std::size_t& at, Decimal& number) {
  bool point = false;
  bool any = false;
  bool full = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    any = true;
    const auto digit = static_cast<std::uint64_t>(text[at] - '0');
    full = full || number.digits > (kLargest - digit) / 10;
    if (full && !point) { return false; }
    if (full) { continue; }
    number.digits = number.digits * 10 + digit;
    number.exponent -= point ? 1 : 0;
  }
  return any;
}

bool read_exponent(std::string_view text, std::size_t& at, Decimal& number) {
  if (at == text.size()) { return true; }
  if (text[at] != 'e' && text[at] != 'E') { return false; }
  ++at;
  bool negative = false;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) { negative = text[at++] == '-'; }
  int exponent = 0;
  const std::size_t first = at;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (exponent < 1000) { exponent = exponent * 10 + (text[at] - '0'); }
  }
  number.exponent += negative ? -exponent : exponent;
  return at > first && at == text.size();
}

}  // namespace

std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds) {
  Decimal number;
  std::size_t at = 0;
  if (!microseconds.empty() && (microseconds[0] == '-' || microseconds[0] == '+')) {
    number.negative = microseconds[0] == '-';
    ++at;
  }
  if (!read_digits(microseconds, at, number) || !read_exponent(microseconds, at, number)) { return std::nullopt; }
  int scale = number.exponent + kDigits;
  for (; scale > 0 && number.digits > 0; --scale) {
    if (number.digits > kLargest / 10) { return std::nullopt; }
    number.digits *= 10;
  }
  unsigned last = 0;  // the last digit that was dropped
  for (; scale < 0 && (number.digits > 0 || last > 0); ++scale) {
    last = static_cast<unsigned>(number.digits % 10);
    number.digits /= 10;
  }
  if (last >= 5) { ++number.digits; }
  if (number.digits > kLargest) { return std::nullopt; }
  const auto value = static_cast<std::int64_t>(number.digits);
  return number.negative ? -value : value;
}

}  // namespace orrery::profile
