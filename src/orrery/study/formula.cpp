#include "orrery/study/formula.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::study {

namespace {

constexpr std::array<std::string_view, 7> kFunctions{"min", "max", "floor", "ceil", "round", "sqrt", "log2"};
constexpr std::array<std::string_view, 3> kWords{"and", "or", "not"};
constexpr std::array<std::string_view, 6> kRelations{"==", "!=", "<=", ">=", "<", ">"};
constexpr int kMostNesting = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

template <class List>
bool is_in(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

class FormulaParser {
 public:
  FormulaParser(std::string_view text, const Place& place) : text_(text), place_(place) { formula_.text_ = text; }

  Result<Formula> run() {
    if (any() && at() < text_.size()) { wrong(fmt::format("unexpected {}", quote(text_.substr(i_, 12)))); }
    if (!message_.empty()) {
      return fail(place_, fmt::format("{}: column {}: {}", quote(text_), failed_at_ + 1, message_));
    }
    return std::move(formula_);
  }

 private:
  using Part = Formula::Part;
  using Type = ValueKind::Type;

  std::size_t at() {
    while (i_ < text_.size() && (text_[i_] == ' ' || text_[i_] == '\t' || text_[i_] == '\n')) { ++i_; }
    return i_;
  }
  bool wrong(std::string message) {
    if (message_.empty()) {
      message_ = std::move(message);
      failed_at_ = i_;
    }
    return false;
  }
  bool take(std::string_view symbol) {
    if (!text_.substr(at()).starts_with(symbol)) { return false; }
    i_ += symbol.size();
    return true;
  }
  // The word at this position, dots included.
  [[nodiscard]] std::string_view word() {
    std::size_t end = at();
    if (end >= text_.size() || !is_letter(text_[end])) { return {}; }
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.')) { ++end; }
    return text_.substr(i_, end - i_);
  }
  bool take_word(std::string_view wanted) {
    if (word() != wanted) { return false; }
    i_ += wanted.size();
    return true;
  }
  void push(std::string operation, std::vector<std::size_t> operands) {
    formula_.parts_.push_back({std::move(operation), {}, {}, std::move(operands), {}});
  }
  [[nodiscard]] std::size_t last() const { return formula_.parts_.size() - 1; }

  template <class Next>
  bool chain(std::string_view joined, Next next) {
    if (!next()) { return false; }
    while (take_word(joined)) {
      const std::size_t left = last();
      if (!next()) { return false; }
      push(std::string(joined), {left, last()});
    }
    return true;
  }
  bool any() {
    return chain("or", [&] { return chain("and", [&] { return negation(); }); });
  }
  bool negation() {
    if (!take_word("not")) { return relation(); }
    if (++depth_ > kMostNesting) { return wrong("too deeply nested"); }
    if (!negation()) { return false; }
    --depth_;
    push("not", {last()});
    return true;
  }
  bool relation() {
    if (!sum()) { return false; }
    for (const auto symbol : kRelations) {
      if (!take(symbol)) { continue; }
      const std::size_t left = last();
      if (!sum()) { return false; }
      push(std::string(symbol), {left, last()});
      return true;
    }
    return true;
  }
  template <class Next>
  bool left_to_right(std::string_view symbols, Next next) {
    if (!next()) { return false; }
    while (at() < text_.size() && symbols.find(text_[i_]) != std::string_view::npos) {
      const std::string symbol(1, text_[i_++]);
      const std::size_t left = last();
      if (!next()) { return false; }
      push(symbol, {left, last()});
    }
    return true;
  }
  bool sum() {
    return left_to_right("+-", [&] { return left_to_right("*/%", [&] { return factor(); }); });
  }
  bool factor() {
    if (++depth_ > kMostNesting) { return wrong("too deeply nested"); }
    const bool done = bare_factor();
    --depth_;
    return done;
  }
  bool bare_factor() {
    if (at() >= text_.size()) { return wrong("ends where a value is expected"); }
    const char c = text_[i_];
    if (take("(")) { return any() && (take(")") || wrong("\")\" is missing")); }
    if (take("-")) {
      if (!factor()) { return false; }
      push("negate", {last()});
      return true;
    }
    if (c == '\'') { return literal_text(); }
    if (is_digit(c) || c == '.') { return literal_number(); }
    return name_or_function();
  }
  bool literal_text() {
    const std::size_t end = text_.find('\'', i_ + 1);
    if (end == std::string_view::npos) { return wrong("a text has no closing '"); }
    formula_.parts_.push_back({"literal", std::string(text_.substr(i_ + 1, end - i_ - 1)), {}, {}, {Type::text, {}}});
    i_ = end + 1;
    return true;
  }
  bool literal_number() {
    double number = 0.0;
    const auto [end, error] = std::from_chars(text_.data() + i_, text_.data() + text_.size(), number);
    if (error != std::errc{}) { return wrong(fmt::format("{} is not a number", quote(text_.substr(i_, 12)))); }
    i_ = static_cast<std::size_t>(end - text_.data());
    std::string unit(word());
    const bool is_unit = !unit.empty() && !is_in(kWords, unit);
    if (is_unit) {
      i_ += unit.size();
      const bool is_rate = text_.substr(i_).starts_with("/s") && (i_ + 2 >= text_.size() || !is_letter(text_[i_ + 2]));
      if (is_rate) {
        unit += "/s";
        i_ += 2;
      }
    } else if (take_percent()) {
      unit = "%";
    }
    if (is_unit || unit == "%") {
      const auto size = unit_size(unit);
      if (!size) {
        return wrong(fmt::format("unknown unit {}; valid are units such as GB, GB/s, us, MW, USD", quote(unit)));
      }
      number *= *size;
    }
    const auto base = quantity_of("1 " + unit);  // without a unit, a number
    formula_.parts_.push_back({"literal", number, {}, {}, ValueKind::of_unit(base ? base->unit : "")});
    return true;
  }
  // "5 %" is a percentage if no operand follows.
  bool take_percent() {
    const std::size_t start = i_;
    if (!take("%")) { return false; }
    const bool operand = at() < text_.size() && (is_letter(text_[i_]) || is_digit(text_[i_]) || text_[i_] == '(') &&
                         !is_in(kWords, word());
    if (operand) { i_ = start; }
    return !operand;
  }
  bool name_or_function() {
    const std::string name(word());
    if (name.empty()) { return wrong(fmt::format("unexpected {}", quote(text_.substr(i_, 12)))); }
    if (is_in(kWords, name)) { return wrong(fmt::format("unexpected {}", quote(name))); }
    i_ += name.size();
    if (name == "true" || name == "false") {
      formula_.parts_.push_back({"literal", name == "true" ? 1.0 : 0.0, {}, {}, {Type::condition, {}}});
      return true;
    }
    if (!take("(")) {
      formula_.parts_.push_back({"name", {}, name, {}, {}});
      return true;
    }
    if (!is_in(kFunctions, name)) {
      std::vector<std::string> known(kFunctions.begin(), kFunctions.end());
      return wrong(fmt::format("unknown function {}; valid: {}", quote(name), join(known, ", ")));
    }
    std::vector<std::size_t> operands;
    do {
      if (!any()) { return false; }
      operands.push_back(last());
    } while (take(","));
    if (!take(")")) { return wrong("\")\" is missing"); }
    const bool takes_many = name == "min" || name == "max";
    if (!takes_many && operands.size() != 1) { return wrong(fmt::format("{} takes one value", name)); }
    push(name, std::move(operands));
    return true;
  }

  std::string_view text_;
  const Place& place_;
  Formula formula_;
  std::size_t i_ = 0, failed_at_ = 0;
  int depth_ = 0;
  std::string message_;
};

Result<Formula> Formula::parse(std::string_view text, const Place& place) { return FormulaParser(text, place).run(); }

std::vector<std::string> Formula::names() const {
  std::vector<std::string> found;
  for (const auto& part : parts_) {
    if (part.operation == "name" && !is_in(found, part.name)) { found.push_back(part.name); }
  }
  return found;
}

namespace {

tl::unexpected<std::string> no_value(std::string why) { return tl::make_unexpected(std::move(why)); }

tl::expected<double, std::string> applied(const std::string& operation, const std::vector<double>& values) {
  const double a = values.front(), b = values.back();
  if (operation == "+") { return a + b; }
  if (operation == "-") { return a - b; }
  if (operation == "*") { return a * b; }
  if (operation == "/" || operation == "%") {
    if (b == 0.0) { return no_value("division by zero"); }
    return operation == "/" ? a / b : std::fmod(a, b);
  }
  if (operation == "<") { return a < b ? 1.0 : 0.0; }
  if (operation == "<=") { return a <= b ? 1.0 : 0.0; }
  if (operation == ">") { return a > b ? 1.0 : 0.0; }
  if (operation == ">=") { return a >= b ? 1.0 : 0.0; }
  if (operation == "and") { return a != 0.0 && b != 0.0 ? 1.0 : 0.0; }
  if (operation == "or") { return a != 0.0 || b != 0.0 ? 1.0 : 0.0; }
  if (operation == "not") { return a == 0.0 ? 1.0 : 0.0; }
  if (operation == "negate") { return -a; }
  if (operation == "min") { return *std::min_element(values.begin(), values.end()); }
  if (operation == "max") { return *std::max_element(values.begin(), values.end()); }
  if (operation == "floor") { return std::floor(a); }
  if (operation == "ceil") { return std::ceil(a); }
  if (operation == "round") { return std::round(a); }
  if (operation == "sqrt" && a < 0.0) { return no_value("square root of a negative number"); }
  if (operation == "sqrt") { return std::sqrt(a); }
  if (operation == "log2" && !(a > 0.0)) { return no_value("logarithm of a number that is not positive"); }
  if (operation == "log2") { return std::log2(a); }
  throw_internal_error("known operation", __FILE__, __LINE__);
}

}  // namespace

tl::expected<StudyCell, std::string> Formula::value(const Lookup& lookup) const {
  std::vector<StudyCell> cells(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (part.operation == "literal") {
      cells[i] = part.literal;
      continue;
    }
    if (part.operation == "name") {
      auto found = lookup(part.name);
      if (!found || std::holds_alternative<std::monostate>(*found)) {
        return no_value(fmt::format("{} has no value", quote(part.name)));
      }
      cells[i] = std::move(*found);
      continue;
    }
    if (part.operation == "==" || part.operation == "!=") {
      const bool equal = cells[part.operands[0]] == cells[part.operands[1]];
      cells[i] = equal == (part.operation == "==") ? 1.0 : 0.0;
      continue;
    }
    std::vector<double> values;
    for (const std::size_t operand : part.operands) {
      const double* number = results::number_of(cells[operand]);
      if (number == nullptr) {
        return no_value(fmt::format("{} is a text, not a number", quote(std::get<std::string>(cells[operand]))));
      }
      values.push_back(*number);
    }
    const auto result = applied(part.operation, values);
    if (!result) { return no_value(result.error()); }
    if (!std::isfinite(*result)) { return no_value("the value is too large"); }
    cells[i] = *result;
  }
  return std::move(cells.back());
}

tl::expected<bool, std::string> Formula::holds(const Lookup& lookup) const {
  const auto cell = value(lookup);
  if (!cell) { return no_value(cell.error()); }
  const double* number = results::number_of(*cell);
  return number != nullptr && *number != 0.0;
}

}  // namespace orrery::study
