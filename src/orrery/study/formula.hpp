// Formulas of a study: derived values, conditions and constraints, over real numbers and texts.
//
//   any      = all { "or" all }         all = not { "and" not }        not = "not" not | relation
//   relation = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//   sum      = product { ("+" | "-") product }      product = factor { ("*" | "/" | "%") factor }
//   factor   = number [ unit ] | 'text' | name | "-" factor | "(" any ")" | function "(" any { "," any } ")"
//   function = min | max | floor | ceil | round | sqrt | log2
//
// Quantities are in SI base units: 40 GB/s is 4e10, 20 MW is 2e7, 5 % is 0.05. A name is a constant of `let`, a column,
// a figure of a result, or, with dots, a field of the scenario (cluster.node_price_usd). true is 1, false is 0. A
// formula that needs a number of something that has none (division by zero, a text) has an error instead of a value.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/study.hpp"

namespace orrery::study {

using results::StudyCell;

// The value of a name; nothing: it has none.
using Lookup = std::function<std::optional<StudyCell>(const std::string& name)>;

// What a value is: of which unit, as far as that is known before there is a value.
struct ValueKind {
  enum class Type : std::uint8_t { unknown, number, condition, text };
  Type type = Type::unknown;
  std::array<int, 5> exponents{};  // of B, s, FLOP, J, USD

  // Of a number in a base unit ("B/s", "W", "USD", "").
  [[nodiscard]] static ValueKind of_unit(std::string_view base_unit);
  [[nodiscard]] bool has_unit() const;
  [[nodiscard]] std::string unit() const;  // "B/s"
  friend bool operator==(const ValueKind&, const ValueKind&) = default;
};
using KindLookup = std::function<ValueKind(const std::string& name)>;

class Formula {
 public:
  [[nodiscard]] static Result<Formula> parse(std::string_view text, const Place& place);

  [[nodiscard]] const std::string& text() const { return text_; }
  // Names that it reads, in the order of their first use.
  [[nodiscard]] std::vector<std::string> names() const;
  // The error names the formula, not a place.
  [[nodiscard]] tl::expected<StudyCell, std::string> value(const Lookup& lookup) const;
  // What its value is. Fails if it compares or adds quantities of two units, or joins with `and` what is no condition.
  // A number without a unit may be compared with and added to every quantity: it is in SI base units.
  [[nodiscard]] tl::expected<ValueKind, std::string> kind(const KindLookup& lookup) const;
  // Whether its value is neither 0 nor a text.
  [[nodiscard]] tl::expected<bool, std::string> holds(const Lookup& lookup) const;

 private:
  friend class FormulaParser;
  friend class FormulaValue;
  struct Part {
    std::string operation;  // "+", "and", "min", "literal", "name"
    StudyCell literal;
    std::string name;
    std::vector<std::size_t> operands;
    ValueKind kind{};  // of a literal
  };
  std::string text_;
  std::vector<Part> parts_;  // operands before operators; the last one is the value
};

// A number with a unit, in SI base units, and its base unit ("B/s"); a number alone has no unit. Nothing: it is a text.
struct Quantity {
  double value = 0.0;
  std::string unit;
};
[[nodiscard]] std::optional<Quantity> quantity_of(std::string_view text);

// The value of one `unit` in SI base units; nothing if there is no such unit.
[[nodiscard]] std::optional<double> unit_size(std::string_view unit);

}  // namespace orrery::study
