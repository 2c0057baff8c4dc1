#include "orrery/explore/expression.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace orrery::explore {

namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
// Divisors are found by trial division up to the square root.
constexpr std::int64_t kLargestWhole = 1'000'000'000'000;

void report(EvaluationError& error, const Place& place, std::string message) {
  if (error.message.empty()) { error = {place, std::move(message)}; }
}

Place place_at(Place place, int column) {
  if (place.column > 0) { place.column += column; }
  return place;
}

// Applies an operation; `fails` if the result is undefined or does not fit in 64 bits.
std::int64_t applied(Operation operation, std::int64_t a, std::int64_t b, bool& fails) {
  std::int64_t result = 0;
  switch (operation) {
    case Operation::add: fails = __builtin_add_overflow(a, b, &result); break;
    case Operation::subtract: fails = __builtin_sub_overflow(a, b, &result); break;
    case Operation::multiply: fails = __builtin_mul_overflow(a, b, &result); break;
    case Operation::negate: fails = __builtin_sub_overflow(std::int64_t{0}, a, &result); break;
    case Operation::divide:
    case Operation::remainder:
      fails = b == 0 || (a == kSmallest && b == -1);
      if (!fails) { result = operation == Operation::divide ? a / b : a % b; }
      break;
    case Operation::common_divisor:
      fails = a == kSmallest || b == kSmallest;
      if (!fails) { result = std::gcd(a, b); }
      break;
    case Operation::least: return std::min(a, b);
    case Operation::greatest: return std::max(a, b);
    case Operation::equal: return a == b ? 1 : 0;
    case Operation::not_equal: return a != b ? 1 : 0;
    case Operation::less: return a < b ? 1 : 0;
    case Operation::less_equal: return a <= b ? 1 : 0;
    case Operation::greater: return a > b ? 1 : 0;
    case Operation::greater_equal: return a >= b ? 1 : 0;
    case Operation::literal:
    case Operation::slot:
    case Operation::logical_and:
    case Operation::logical_or:
    case Operation::logical_not: break;  // Expression::value_of
  }
  return fails ? 0 : result;
}

// Appends values to an axis up to kMostValues.
class Appender {
 public:
  Appender(std::vector<std::int64_t>& out, const Place& place, EvaluationError& error)
      : out_(out), place_(place), error_(error) {}

  bool operator()(std::int64_t value) {
    if (out_.size() >= kMostValues) {
      report(error_, place_, fmt::format("gives more than {} values", kMostValues));
      return false;
    }
    out_.push_back(value);
    return true;
  }

 private:
  std::vector<std::int64_t>& out_;
  const Place& place_;
  EvaluationError& error_;
};

void append_divisors(std::int64_t whole, const Place& place, std::vector<std::int64_t>& out, EvaluationError& error) {
  if (whole > kLargestWhole) {
    return report(error, place,
                  fmt::format("divisors of {} are not calculated; the largest number is {}", whole, kLargestWhole));
  }
  Appender append(out, place, error);
  std::int64_t d = 1;
  for (; d * d < whole; ++d) {
    if (whole % d == 0 && !append(d)) { return; }
  }
  for (; d >= 1; --d) {
    if (d * d <= whole && whole % d == 0 && !append(whole / d)) { return; }
  }
}

void append_powers(std::int64_t base, std::int64_t most, const Place& place, std::vector<std::int64_t>& out,
                   EvaluationError& error) {
  Appender append(out, place, error);
  for (std::int64_t power = 1; power <= most && append(power) && base >= 2 && power <= kLargest / base;) {
    power *= base;
  }
}

}  // namespace

const ValueKind& integers() {
  static const ValueKind kind{"a whole number", {}};
  return kind;
}

const ValueKind& booleans() {
  static constexpr std::array<std::string_view, 2> kNames{"false", "true"};
  static const ValueKind kind{"true or false", kNames};
  return kind;
}

std::optional<std::int64_t> ValueKind::choice(std::string_view text) const {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) { return found - choices.begin(); }
  for (const auto& [alias, value] : aliases) {
    if (alias == text) { return value; }
  }
  return std::nullopt;
}

SlotMask Expression::uses() const {
  SlotMask mask = 0;
  for (const Part& part : parts_) {
    if (part.operation == Operation::slot) { mask |= mask_of(static_cast<Slot>(part.value)); }
  }
  return mask;
}

std::int64_t Expression::value(const Slots& slots, EvaluationError& error) const {
  return value_of(static_cast<std::int32_t>(parts_.size()) - 1, slots, error);
}

std::int64_t Expression::value_of(std::int32_t index, const Slots& slots, EvaluationError& error) const {
  const Part& part = parts_[static_cast<std::size_t>(index)];
  if (part.operation == Operation::literal) { return part.value; }
  if (part.operation == Operation::slot) { return slots[static_cast<std::size_t>(part.value)]; }
  const std::int64_t a = value_of(part.left, slots, error);
  if (part.operation == Operation::logical_not) { return a == 0 ? 1 : 0; }
  if (part.operation == Operation::logical_and && a == 0) { return 0; }
  if (part.operation == Operation::logical_or && a != 0) { return 1; }
  const std::int64_t b = part.right >= 0 ? value_of(part.right, slots, error) : 0;
  if (part.operation == Operation::logical_and || part.operation == Operation::logical_or) { return b; }
  bool fails = false;
  const std::int64_t result = applied(part.operation, a, b, fails);
  if (fails) {
    const bool divides = part.operation == Operation::divide || part.operation == Operation::remainder;
    report(error, place_at(place_, part.column), divides && b == 0 ? "divides by zero" : "is beyond 64 bits");
  }
  return result;
}

SlotMask AxisValues::uses() const {
  SlotMask mask = 0;
  for (const ValueSet& set : sets) { mask |= set.first.uses() | set.last.uses() | set.where.uses(); }
  return mask;
}

void append_values(const ValueSet& set, const Slots& slots, Slot devices, std::vector<std::int64_t>& out,
                   EvaluationError& error) {
  const std::int64_t first = set.first.value(slots, error);
  const std::int64_t last = set.last.is_empty() ? slots[devices] : set.last.value(slots, error);
  if (!error.message.empty()) { return; }
  Appender append(out, set.place, error);
  switch (set.form) {
    case ValueSet::Form::one: append(first); return;
    case ValueSet::Form::range:
      for (std::int64_t value = first; value <= last && append(value) && value < kLargest;) { ++value; }
      return;
    case ValueSet::Form::divisors: return append_divisors(first, set.place, out, error);
    case ValueSet::Form::powers: return append_powers(first, last, set.place, out, error);
  }
}

}  // namespace orrery::explore
