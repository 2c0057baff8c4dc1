// The expression language of space files: the values of an axis, which may depend on the axes before it.
//
//   values  = set { "," set } [ "where" any ]
//   set     = "[" set { "," set } "]" | "divisors" "(" sum ")" | "powers" "(" sum [ "," sum ] ")" | sum [ ".." sum ]
//   any     = all { "or" all }          all  = not { "and" not }          not = "not" not | relation
//   relation = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//   sum     = product { ("+" | "-") product }      product = factor { ("*" | "/" | "%") factor }
//   factor  = integer | name | "-" factor | "(" any ")" | ("min" | "max") "(" sum "," sum { "," sum } ")"
//           | "gcd" "(" sum "," sum ")"
//
// Whole numbers of 64 bits; "/" rounds towards zero. true and false, and the choices of an axis (full, ring), are
// values of other kinds: they can only be compared with values of the same kind. `divisors(x)`: the divisors of x in
// ascending order, none if x < 1. `powers(b)`: 1, b, b b, ... up to the number of devices; `powers(b, most)`: up to
// `most`. A repeated value counts once.
//
// Not supported: real numbers, text, user-defined functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"

namespace orrery::explore {

// Index of the variable that holds a name's value during a walk. SlotMask is a set of slots.
using Slot = std::uint8_t;
inline constexpr std::size_t kSlots = 64;
using SlotMask = std::uint64_t;
using Slots = std::array<std::int64_t, kSlots>;

[[nodiscard]] constexpr SlotMask mask_of(Slot slot) { return SlotMask{1} << slot; }

// A kind of values. A choice has a name; its value is its position in `choices`.
struct ValueKind {
  std::string_view name;  // "integer", "recompute": for messages
  std::span<const std::string_view> choices;
  std::span<const std::pair<std::string_view, std::int64_t>> aliases = {};  // other names of choices

  // The value of a choice with this name or alias.
  [[nodiscard]] std::optional<std::int64_t> choice(std::string_view text) const;
};
[[nodiscard]] const ValueKind& integers();
[[nodiscard]] const ValueKind& booleans();  // choices false, true

// A name in an expression; `why_not` says why it cannot be used there.
struct Word {
  std::string name;
  Slot slot = 0;
  const ValueKind* kind = nullptr;
  std::string why_not;  // empty: it can be used
};

struct Vocabulary {
  std::vector<Word> words;
  std::vector<const ValueKind*> kinds;  // kinds whose choices may be named
  Slot devices = 0;                     // limit of powers(b) without a limit of its own
};

enum class Operation : std::uint8_t {
  literal,
  slot,
  negate,
  add,
  subtract,
  multiply,
  divide,
  remainder,
  least,
  greatest,
  common_divisor,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_not,
};

// Why an expression has no value: division by zero, overflow, too many values.
struct EvaluationError {
  Place place;
  std::string message;  // empty: none
};

// An expression tree in one vector, operands before operators; evaluated without allocation.
class Expression {
 public:
  struct Part {
    Operation operation = Operation::literal;
    std::int64_t value = 0;              // of a literal; for a slot, its index
    std::int32_t left = -1, right = -1;  // operands
    int column = 0;                      // 0-based, in the text
  };

  [[nodiscard]] bool is_empty() const { return parts_.empty(); }
  [[nodiscard]] SlotMask uses() const;  // slots that it reads
  // The value; if it cannot be calculated, 0, and `error` is set.
  [[nodiscard]] std::int64_t value(const Slots& slots, EvaluationError& error) const;

 private:
  friend class ExpressionParser;
  [[nodiscard]] std::int64_t value_of(std::int32_t index, const Slots& slots, EvaluationError& error) const;

  std::vector<Part> parts_;
  Place place_;  // place of the text's first character
};

// One set of values: an item of the list.
struct ValueSet {
  enum class Form : std::uint8_t { one, range, divisors, powers };
  Form form = Form::one;
  Expression first;  // the value; the start of the range; the number to divide; the base
  Expression last;   // the end of the range; the largest power
  Expression where;  // empty: always
  Place place;
};

// The values of an axis in the order written.
struct AxisValues {
  std::vector<ValueSet> sets;

  [[nodiscard]] SlotMask uses() const;  // slots that values and conditions read
};

// A limit for the values of an axis.
inline constexpr std::size_t kMostValues = 65'535;

// Appends the values of a set without checking its condition.
void append_values(const ValueSet& set, const Slots& slots, Slot devices, std::vector<std::int64_t>& out,
                   EvaluationError& error);

// Parses a scalar, or a list of scalars, each of which may have a condition. `kind`: the axis's kind of values.
// `words`: names of the axes before it and of the axis itself, which only conditions may use. All errors are collected.
[[nodiscard]] Result<AxisValues> parse_values(const config::Node& node, const ValueKind& kind, const Vocabulary& words);

}  // namespace orrery::explore
