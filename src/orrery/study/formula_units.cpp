#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/study/formula.hpp"

namespace orrery::study {

using Type = ValueKind::Type;

namespace {

struct KnownUnit {
  std::string_view name;
  std::array<int, 5> exponents;  // of B, s, FLOP, J, USD
};
constexpr std::array<KnownUnit, 10> kKnownUnits{{{"B", {1, 0, 0, 0, 0}},
                                                 {"s", {0, 1, 0, 0, 0}},
                                                 {"FLOP", {0, 0, 1, 0, 0}},
                                                 {"J", {0, 0, 0, 1, 0}},
                                                 {"USD", {0, 0, 0, 0, 1}},
                                                 {"B/s", {1, -1, 0, 0, 0}},
                                                 {"FLOP/s", {0, -1, 1, 0, 0}},
                                                 {"W", {0, -1, 0, 1, 0}},
                                                 {"1/s", {0, -1, 0, 0, 0}},
                                                 {"Hz", {0, -1, 0, 0, 0}}}};

using FoundKind = tl::expected<ValueKind, std::string>;

// Of two values that are compared or added.
FoundKind shared(const std::string& operation, const ValueKind& a, const ValueKind& b) {
  if (a.has_unit() && b.has_unit() && a.exponents != b.exponents) {
    return tl::make_unexpected(
        fmt::format("{} has {} on one side and {} on the other", quote(operation), a.unit(), b.unit()));
  }
  if (a.type == Type::unknown || b.type == Type::unknown) { return ValueKind{}; }
  return ValueKind{Type::number, a.has_unit() ? a.exponents : b.exponents};
}

FoundKind product(const ValueKind& a, const ValueKind& b, int sign) {
  if (a.type == Type::unknown || b.type == Type::unknown) { return ValueKind{}; }
  ValueKind result{Type::number, a.exponents};
  for (std::size_t i = 0; i < result.exponents.size(); ++i) { result.exponents[i] += sign * b.exponents[i]; }
  return result;
}

ValueKind root(const ValueKind& a) {
  const bool is_even = std::all_of(a.exponents.begin(), a.exponents.end(), [](int e) { return e % 2 == 0; });
  if (a.type != Type::number || !is_even) { return {}; }
  ValueKind result = a;
  for (int& exponent : result.exponents) { exponent /= 2; }
  return result;
}

FoundKind joined(const std::string& operation, const std::vector<ValueKind>& kinds) {
  for (const ValueKind& kind : kinds) {
    if (kind.type == Type::condition || kind.type == Type::unknown) { continue; }
    return tl::make_unexpected(fmt::format("{} needs conditions, such as x > 0", quote(operation)));
  }
  return ValueKind{Type::condition, {}};
}

FoundKind kind_of_operation(const std::string& operation, const std::vector<ValueKind>& kinds) {
  const ValueKind &a = kinds.front(), &b = kinds.back();
  if (operation == "and" || operation == "or" || operation == "not") { return joined(operation, kinds); }
  if (operation == "*" || operation == "/") { return product(a, b, operation == "*" ? 1 : -1); }
  if (operation == "sqrt") { return root(a); }
  if (operation == "log2") { return ValueKind{Type::number, {}}; }
  FoundKind all = a;
  for (std::size_t i = 1; i < kinds.size() && all; ++i) { all = shared(operation, *all, kinds[i]); }
  const bool is_relation =
      operation == "==" || operation == "!=" || operation.front() == '<' || operation.front() == '>';
  if (all && is_relation) { return ValueKind{Type::condition, {}}; }
  return all;
}

}  // namespace

ValueKind ValueKind::of_unit(std::string_view base_unit) {
  if (base_unit.empty()) { return {Type::number, {}}; }
  for (const auto& known : kKnownUnits) {
    if (known.name == base_unit) { return {Type::number, known.exponents}; }
  }
  return {};
}

bool ValueKind::has_unit() const { return type == Type::number && exponents != std::array<int, 5>{}; }

std::string ValueKind::unit() const {
  for (const auto& known : kKnownUnits) {
    if (known.exponents == exponents) { return std::string(known.name); }
  }
  std::string text;
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    if (exponents[i] == 0) { continue; }
    text += fmt::format("{}{}", text.empty() ? "" : " ", kKnownUnits[i].name);
    if (exponents[i] != 1) { text += fmt::format("^{}", exponents[i]); }
  }
  return text.empty() ? "a number" : text;
}

FoundKind Formula::kind(const KindLookup& lookup) const {
  std::vector<ValueKind> kinds;
  for (const Part& part : parts_) {
    if (part.operands.empty()) {
      kinds.push_back(part.operation == "name" ? lookup(part.name) : part.kind);
      continue;
    }
    std::vector<ValueKind> operands;
    for (const std::size_t operand : part.operands) { operands.push_back(kinds[operand]); }
    const auto kind = kind_of_operation(part.operation, operands);
    if (!kind) { return kind; }
    kinds.push_back(*kind);
  }
  return kinds.back();
}

}  // namespace orrery::study
