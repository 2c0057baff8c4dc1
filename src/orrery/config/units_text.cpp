#include "orrery/config/units_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

using Message = tl::unexpected<std::string>;

Message wrong(std::string message) { return Message(std::move(message)); }

// value = number * 10^exp10 * 2^exp2 * factor. The powers of ten go into the text before it is converted, those of two
// are exact, so that only a factor other than 1 (min, h, d) rounds twice.
struct Unit {
  std::string symbol;
  int exp10 = 0;
  int exp2 = 0;
  double factor = 1.0;
};

struct Prefix {
  std::string_view symbol;
  int exponent;
};

constexpr std::array<Prefix, 7> kDecimal{{{"", 0}, {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}}};
constexpr std::array<Prefix, 6> kBinary{{{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};
constexpr std::array<Prefix, 5> kFractions{{{"p", -12}, {"n", -9}, {"u", -6}, {"m", -3}, {"", 0}}};
constexpr int kBitsToBytes = -3;  // 1 b = 2^-3 B

constexpr std::array<Dimension, 6> kDimensions{
    Dimension::bytes, Dimension::seconds, Dimension::flops, Dimension::bytes_per_second, Dimension::flops_per_second,
    Dimension::hertz};

struct DimensionWords {
  std::string_view name;
  std::string_view unit;     // proposed
  std::string_view example;  // a usual number of that unit
  std::string_view base;     // the unit without prefix
};

DimensionWords words(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes: return {"size", "GiB", "80", "B"};
    case Dimension::seconds: return {"time", "us", "2", "s"};
    case Dimension::flops: return {"FLOP count", "TFLOP", "1", "FLOP"};
    case Dimension::bytes_per_second: return {"data rate", "GB/s", "400", "B/s"};
    case Dimension::flops_per_second: return {"compute rate", "TFLOP/s", "312", "FLOP/s"};
    case Dimension::hertz: return {"frequency", "GHz", "1.41", "Hz"};
  }
  return {};
}

void add_decimal(std::vector<Unit>& units, std::string_view base, int exp2 = 0) {
  for (const auto& [prefix, exponent] : kDecimal) {
    units.push_back({fmt::format("{}{}", prefix, base), exponent, exp2});
  }
}

void add_binary(std::vector<Unit>& units, std::string_view base, int exp2 = 0) {
  for (const auto& [prefix, exponent] : kBinary) {
    units.push_back({fmt::format("{}{}", prefix, base), 0, exponent + exp2});
  }
}

std::vector<Unit> time_units() {
  std::vector<Unit> units;
  for (const auto& [prefix, exponent] : kFractions) { units.push_back({fmt::format("{}s", prefix), exponent}); }
  units.push_back({"\u00b5s", -6});  // micro sign
  units.push_back({"\u03bcs", -6});  // Greek small letter mu
  units.push_back({"min", 0, 0, 60.0});
  units.push_back({"h", 0, 0, 3600.0});
  units.push_back({"d", 0, 0, 86400.0});
  return units;
}

std::vector<Unit> make_units(Dimension dimension) {
  std::vector<Unit> units;
  switch (dimension) {
    case Dimension::bytes:
      add_decimal(units, "B");
      add_binary(units, "B");
      break;
    case Dimension::seconds: return time_units();
    case Dimension::flops: add_decimal(units, "FLOP"); break;
    case Dimension::bytes_per_second:
      for (const std::string_view base : {"B/s", "Bps"}) {
        add_decimal(units, base);
        add_binary(units, base);
      }
      for (const std::string_view base : {"b/s", "bps", "bit/s"}) {
        add_decimal(units, base, kBitsToBytes);
        add_binary(units, base, kBitsToBytes);
      }
      break;
    case Dimension::flops_per_second:
      add_decimal(units, "FLOP/s");
      add_decimal(units, "FLOPS");
      break;
    case Dimension::hertz: add_decimal(units, "Hz"); break;
  }
  return units;
}

std::span<const Unit> units_of(Dimension dimension) {
  static const std::array<std::vector<Unit>, kDimensions.size()> all = [] {
    std::array<std::vector<Unit>, kDimensions.size()> tables;
    for (const Dimension d : kDimensions) { tables[static_cast<std::size_t>(d)] = make_units(d); }
    return tables;
  }();
  return all[static_cast<std::size_t>(dimension)];
}

const Unit* find_unit(Dimension dimension, std::string_view symbol) {
  const auto units = units_of(dimension);
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.symbol == symbol; });
  return found == units.end() ? nullptr : &*found;
}

// ---- the number --------------------------------------------------------------------------------------------------

struct NumberText {
  std::string_view significand;  // "3.35"
  int exponent = 0;              // of a trailing e12
  std::string_view rest;         // the unit
};

// "e12" only where digits follow, so that "5EB" is five exabytes. Beyond the range of doubles the exponent is cut
// short.
std::size_t skip_exponent(std::string_view text, std::size_t i, int& exponent) {
  if (i >= text.size() || (text[i] != 'e' && text[i] != 'E')) { return i; }
  std::size_t j = i + 1;
  const bool negative = j < text.size() && text[j] == '-';
  if (j < text.size() && (text[j] == '-' || text[j] == '+')) { ++j; }
  const std::size_t end = skip_digits(text, j);
  if (end == j) { return i; }
  constexpr int kLargest = 1'000'000;
  for (; j < end; ++j) { exponent = std::min(kLargest, exponent * 10 + (text[j] - '0')); }
  exponent = negative ? -exponent : exponent;
  return end;
}

std::optional<NumberText> split_number(std::string_view text) {
  std::size_t i = skip_digits(text, 0);
  std::size_t digits = i;
  if (i < text.size() && text[i] == '.') {
    const std::size_t end = skip_digits(text, i + 1);
    digits += end - (i + 1);
    i = end;
  }
  if (digits == 0) { return std::nullopt; }
  NumberText number{text.substr(0, i), 0, {}};
  i = skip_exponent(text, i, number.exponent);
  number.rest = text.substr(i);
  while (number.rest.starts_with(' ')) { number.rest.remove_prefix(1); }
  return number;
}

bool is_zero(const NumberText& number) {
  return number.significand.find_first_of("123456789") == std::string_view::npos;
}

// Correctly rounded; infinity or zero where a double cannot hold the number.
double number_value(const NumberText& number, int exp10) {
  std::string text = fmt::format("{}e{}", number.significand, number.exponent + exp10);
  if (text.starts_with('.')) { text.insert(0, "0"); }
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::result_out_of_range) { return value; }
  // libstdc++ leaves the value alone in both directions; where the first digit that counts stands tells which it was.
  const std::size_t first = number.significand.find_first_of("123456789");
  const std::size_t point = std::min(number.significand.find('.'), number.significand.size());
  const auto magnitude = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  return magnitude + number.exponent + exp10 > 0 ? HUGE_VAL : 0.0;
}

// ---- what went wrong ---------------------------------------------------------------------------------------------

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// Units of the dimension that the user may have meant; several where case alone decides ("mb/s": MB/s or Mb/s).
std::vector<std::string> near_units(std::string_view symbol, Dimension dimension) {
  const auto known = [&](const std::string& candidate) { return find_unit(dimension, candidate) != nullptr; };
  const std::string with_rate = fmt::format("{}/s", symbol);
  if (known(with_rate)) { return {with_rate}; }
  if (symbol.ends_with("/s") && known(std::string(symbol.substr(0, symbol.size() - 2)))) {
    return {std::string(symbol.substr(0, symbol.size() - 2))};
  }
  if (symbol.starts_with('K')) {  // there is no K: is it 1000 or 1024?
    const std::string rest(symbol.substr(1));
    if (known("k" + rest) && known("Ki" + rest)) { return {"k" + rest, "Ki" + rest}; }
  }
  const std::size_t allowed = std::max<std::size_t>(1, symbol.size() / 3);
  std::size_t best = allowed + 1;
  std::vector<std::string> near;
  for (const Unit& unit : units_of(dimension)) {
    const std::size_t distance = edit_distance(symbol, unit.symbol);
    if (distance < best) { near.clear(); }
    best = std::min(best, distance);
    if (distance == best && distance <= allowed) { near.push_back(unit.symbol); }
  }
  constexpr std::size_t kMostProposals = 2;
  return best == 0 || near.size() <= kMostProposals ? near : std::vector<std::string>{};
}

std::string proposal(std::string_view number, std::span<const std::string> units) {
  std::string text;
  for (const auto& unit : units) { text += fmt::format("{}\"{} {}\"", text.empty() ? "" : " or ", number, unit); }
  return text;
}

std::string unit_message(std::string_view text, std::string_view number, std::string_view symbol, Dimension dimension,
                         const std::string& example) {
  std::string message;
  for (const Dimension other : kDimensions) {
    if (message.empty() && other != dimension && find_unit(other, symbol) != nullptr) {
      message = fmt::format("{} is a {}, not a {}", quote(text), dimension_name(other), dimension_name(dimension));
    }
  }
  if (message.empty()) {
    const bool separator = symbol.starts_with(',') || symbol.starts_with('_');
    message = separator ? fmt::format("{} must be written without separators between digits", quote(text))
                        : fmt::format("{} has an unknown unit {}", quote(text), quote(symbol));
  }
  const auto near = near_units(symbol, dimension);
  if (!near.empty()) { return fmt::format("{}; did you mean {}?", message, proposal(number, near)); }
  return fmt::format("{}; write for example {}", message, example);
}

std::string not_a_number_message(std::string_view text, Dimension dimension, const std::string& example) {
  const std::string small = lower(text);
  for (const std::string_view word : {"nan", ".nan", "inf", ".inf", "+inf", "+.inf", "-inf", "-.inf"}) {
    if (small.starts_with(word)) {
      return fmt::format("{} is not a finite number; write for example {}", quote(text), example);
    }
  }
  if (text.empty()) { return fmt::format("has no value; write for example {}", example); }
  const bool negative = text.starts_with('-') && split_number(text.substr(1)).has_value();
  if (negative) { return fmt::format("{} is negative; a {} is at least 0", quote(text), dimension_name(dimension)); }
  return fmt::format("{} is not a {}; write for example {}", quote(text), dimension_name(dimension), example);
}

// ---- printing ----------------------------------------------------------------------------------------------------

// digits[0].digits[1...] * 10^exponent, the fewest digits that read back as the same double.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

Decimal shortest(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  Decimal decimal;
  for (const char c : text.substr(0, e)) {
    if (is_digit(c)) { decimal.digits += c; }
  }
  std::string_view exponent = text.substr(e + 1);
  if (exponent.starts_with('+')) { exponent.remove_prefix(1); }
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), decimal.exponent);
  return decimal;
}

// The decimal times 10^-shift, as text.
std::string shifted_text(const Decimal& decimal, int shift) {
  const int exponent = decimal.exponent - shift;
  const int count = static_cast<int>(decimal.digits.size());
  constexpr int kMostPlaces = 15;
  if (exponent < -4 || exponent > kMostPlaces) {
    const std::string fraction = count > 1 ? "." + decimal.digits.substr(1) : "";
    return fmt::format("{}{}e{}", decimal.digits[0], fraction, exponent);
  }
  if (exponent < 0) {
    const int zeros = -exponent - 1;
    return "0." + std::string(static_cast<std::size_t>(zeros), '0') + decimal.digits;
  }
  if (count <= exponent + 1) {
    const int zeros = exponent + 1 - count;
    return decimal.digits + std::string(static_cast<std::size_t>(zeros), '0');
  }
  const auto point = static_cast<std::size_t>(exponent) + 1;
  return decimal.digits.substr(0, point) + "." + decimal.digits.substr(point);
}

template <std::size_t N>
const Prefix& largest_below(const std::array<Prefix, N>& prefixes, int exponent) {
  const Prefix* best = &prefixes.front();
  for (const Prefix& prefix : prefixes) {
    if (prefix.exponent <= exponent) { best = &prefix; }
  }
  return *best;
}

std::string decimal_text(double value, Dimension dimension) {
  const Decimal decimal = shortest(value);
  const Prefix& prefix = dimension == Dimension::seconds ? largest_below(kFractions, decimal.exponent)
                                                         : largest_below(kDecimal, decimal.exponent);
  return fmt::format("{} {}{}", shifted_text(decimal, prefix.exponent), prefix.symbol, words(dimension).base);
}

std::string binary_text(double value, Dimension dimension) {
  const Prefix& prefix = largest_below(kBinary, std::ilogb(value));
  const std::string number = shifted_text(shortest(std::ldexp(value, -prefix.exponent)), 0);
  return fmt::format("{} {}{}", number, prefix.symbol, words(dimension).base);
}

}  // namespace

std::string_view dimension_name(Dimension dimension) { return words(dimension).name; }
std::string_view usual_unit(Dimension dimension) { return words(dimension).unit; }

tl::expected<double, std::string> parse_quantity(std::string_view text, Dimension dimension,
                                                 std::string_view proposed_unit) {
  const std::string_view unit_to_propose = proposed_unit.empty() ? usual_unit(dimension) : proposed_unit;
  const std::string example = fmt::format("\"{} {}\"", words(dimension).example, unit_to_propose);
  while (text.starts_with(' ')) { text.remove_prefix(1); }
  while (text.ends_with(' ')) { text.remove_suffix(1); }
  const auto number = split_number(text.starts_with('+') ? text.substr(1) : text);
  if (!number) { return wrong(not_a_number_message(text, dimension, example)); }
  if (number->rest.empty()) {
    if (is_zero(*number)) { return 0.0; }
    return wrong(fmt::format("{} has no unit; did you mean \"{} {}\"?", quote(text), text, unit_to_propose));
  }
  const Unit* unit = find_unit(dimension, number->rest);
  if (unit == nullptr) {
    std::string_view written = text.substr(0, text.size() - number->rest.size());
    while (written.ends_with(' ')) { written.remove_suffix(1); }
    return wrong(unit_message(text, written, number->rest, dimension, example));
  }
  const double value = std::ldexp(number_value(*number, unit->exp10), unit->exp2) * unit->factor;
  if (std::isinf(value)) { return wrong(fmt::format("{} is too large", quote(text))); }
  if (value == 0.0 && !is_zero(*number)) { return wrong(fmt::format("{} is too small; write 0", quote(text))); }
  return value;
}

std::string print_quantity(double value, Dimension dimension) {
  if (value == 0.0) { return fmt::format("0 {}", words(dimension).base); }
  if (!std::isfinite(value) || value < 0.0) { return fmt::format("{} {}", value, words(dimension).base); }
  std::string text = decimal_text(value, dimension);
  const bool may_be_binary = dimension == Dimension::bytes || dimension == Dimension::bytes_per_second;
  if (may_be_binary && value >= 1024.0) {
    std::string binary = binary_text(value, dimension);
    if (binary.size() < text.size()) { text = std::move(binary); }
  }
  return text;
}

}  // namespace orrery::config
