#include "orrery/study/study_units.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::study {

namespace {

class UnitChecker {
 public:
  explicit UnitChecker(const Study& study) : study_(study) {}

  std::vector<Diagnostic> run(const std::vector<Place>& places) {
    if (const config::Node* let = study_.tree.find("let")) { add_constants(*let); }
    for (const Axis& axis : study_.axes) { add_axis(axis); }
    for (const Derived& one : study_.derived) { add_derived(one); }
    std::size_t place = 0;
    for (const Formula& condition : study_.where) { check_condition(condition, places[place++]); }
    for (const auto name : results::kMetricNames) {
      const bool has_any_unit = name == "threshold";
      kinds_.emplace(name, has_any_unit ? ValueKind{} : ValueKind::of_unit(results::metric_unit(name)));
    }
    for (const Derived& one : study_.figures) { add_derived(one); }
    for (const Formula& condition : study_.constraints) { check_condition(condition, places[place++]); }
    return std::move(wrong_);
  }

 private:
  void add_constants(const config::Node& let) {
    for (const auto& member : let.members) {
      const auto formula = Formula::parse(member.value.scalar, member.value.place);
      if (formula) { kinds_[member.key] = kind_of(*formula, member.value.place); }
    }
  }
  void add_axis(const Axis& axis) {
    for (const auto& column : axis.columns) {
      // Texts, or a zero that needs no unit.
      const ValueKind kind = column.unit.empty() ? ValueKind{} : ValueKind::of_unit(column.unit);
      kinds_[column.name] = kinds_[column.path] = kind;
    }
  }
  void add_derived(const Derived& one) {
    ValueKind kind = kind_of(one.formula, one.place);
    if (!one.unit.empty()) {
      const auto written = ValueKind::of_unit(one.column.unit);
      if (kind.has_unit() && written.has_unit() && kind.exponents != written.exponents) {
        wrong_.push_back(
            {one.place, fmt::format("{} is in {}, not in {}", quote(one.formula.text()), kind.unit(), one.unit)});
      }
      kind = written;
    }
    kinds_[one.column.name] = kinds_[one.column.path] = kind;
  }
  ValueKind kind_of(const Formula& formula, const Place& place) {
    auto kind = formula.kind([&](const std::string& name) {
      const auto found = kinds_.find(name);
      return found == kinds_.end() ? ValueKind{} : found->second;
    });
    if (kind) { return *kind; }
    wrong_.push_back({place, fmt::format("{}: {}", quote(formula.text()), kind.error())});
    return {ValueKind::Type::condition, {}};  // one error for a formula
  }
  void check_condition(const Formula& formula, const Place& place) {
    if (kind_of(formula, place).type == ValueKind::Type::condition) { return; }
    wrong_.push_back({place, fmt::format("{} is not a condition; write a comparison, such as {} < 10",
                                         quote(formula.text()), formula.text())});
  }

  const Study& study_;
  std::map<std::string, ValueKind> kinds_;
  std::vector<Diagnostic> wrong_;
};

}  // namespace

std::vector<Diagnostic> unit_mistakes(const Study& study, const std::vector<Place>& places) {
  return UnitChecker(study).run(places);
}

}  // namespace orrery::study
