// The small language of space files: which values an axis has, by what was chosen before it.
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
// values of their own kinds: they are compared with values of the same kind only, and are not calculated with.
// `divisors(x)` are those of x in ascending order, none where x < 1. `powers(b)` are 1, b, b b, ... up to the number of
// devices, `powers(b, most)` up to `most`. A value that repeats counts once.
//
// Left out: real numbers, text, functions of the user's own.
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

// Where a name's value is kept while a space is walked. A set of slots is a mask.
using Slot = std::uint8_t;
inline constexpr std::size_t kSlots = 64;
using SlotMask = std::uint64_t;
using Slots = std::array<std::int64_t, kSlots>;

[[nodiscard]] constexpr SlotMask mask_of(Slot slot) { return SlotMask{1} << slot; }

// Kinds of values. Choices have names; the value of a choice is its position among them.
struct ValueKind {
  std::string_view name;  // "integer", "recompute": for messages
  std::span<const std::string_view> choices;
  std::span<const std::pair<std::string_view, std::int64_t>> aliases = {};  // other names of choices

  // The value of a choice by name.
  [[nodiscard]] std::optional<std::int64_t> choice(std::string_view text) const;
};
[[nodiscard]] const ValueKind& integers();
[[nodiscard]] const ValueKind& booleans();  // choices false, true

// A name that an expression may use, or one that it may not use yet.
struct Word {
  std::string name;
  Slot slot = 0;
  const ValueKind* kind = nullptr;
  std::string why_not;  // empty: it may be used
};

struct Vocabulary {
  std::vector<Word> words;
  std::vector<const ValueKind*> kinds;  // whose choices may be named
  Slot devices = 0;                     // where powers without an end of its own stop
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
  both,
  either,
  opposite,
};

// What cannot be calculated: by zero, beyond 64 bits, too many values.
struct Trouble {
  Place place;
  std::string message;  // empty: none
};

// A tree in one vector, operands before operators; evaluated without allocation.
class Expression {
 public:
  struct Part {
    Operation operation = Operation::literal;
    std::int64_t value = 0;              // of a literal; a slot's number
    std::int32_t left = -1, right = -1;  // operands
    int column = 0;                      // 0-based, in the text
  };

  [[nodiscard]] bool is_empty() const { return parts_.empty(); }
  [[nodiscard]] SlotMask uses() const;  // slots whose values it reads
  // 0 and a note in `trouble` where it cannot be calculated.
  [[nodiscard]] std::int64_t value(const Slots& slots, Trouble& trouble) const;

 private:
  friend class ExpressionParser;
  [[nodiscard]] std::int64_t value_of(std::int32_t index, const Slots& slots, Trouble& trouble) const;

  std::vector<Part> parts_;
  Place place_;  // of the text's first character
};

// One set of values: of a list, one item.
struct ValueSet {
  enum class Form : std::uint8_t { one, range, divisors, powers };
  Form form = Form::one;
  Expression first;  // the value; the range's start; whose divisors; the base
  Expression last;   // the range's end; the largest power
  Expression where;  // empty: always
  Place place;
};

// All that an axis is said to have, in order.
struct AxisValues {
  std::vector<ValueSet> sets;

  [[nodiscard]] SlotMask uses() const;  // of values and conditions
};

// More than any axis needs, few enough to be kept for every prefix.
inline constexpr std::size_t kMostValues = 65'535;

// Appends the values of a set, its condition not asked.
void append_values(const ValueSet& set, const Slots& slots, Slot devices, std::vector<std::int64_t>& out,
                   Trouble& trouble);

// From a scalar, or a list of scalars each of which may have a condition of its own. `kind` is that of the axis,
// `words` what stands before it and the axis itself, which conditions may name. All mistakes are collected.
[[nodiscard]] Result<AxisValues> parse_values(const config::Node& node, const ValueKind& kind, const Vocabulary& words);

}  // namespace orrery::explore
