#include "orrery/study/points.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::study {

namespace {

// Combinations of values; nothing if there are more than kMostPoints.
std::optional<std::int64_t> combinations(const Study& study) {
  if (study.sampler.kind != SamplerKind::grid) {
    return study.sampler.points <= kMostPoints ? std::optional(study.sampler.points) : std::nullopt;
  }
  std::int64_t product = 1;
  for (const Axis& axis : study.axes) {
    const auto count = static_cast<std::int64_t>(axis.values.size());
    if (count > kMostPoints || product * count > kMostPoints) { return std::nullopt; }
    product *= count;
  }
  return product;
}

double product_of(const Study& study) {
  double product = 1.0;
  for (const Axis& axis : study.axes) { product *= static_cast<double>(axis.values.size()); }
  return study.sampler.kind == SamplerKind::grid ? product : static_cast<double>(study.sampler.points);
}

// Different values of an axis; infinite for a range of quantities.
double values_of(const Axis& axis) {
  if (!axis.range) { return static_cast<double>(axis.values.size()); }
  return axis.range->is_whole ? axis.range->high - axis.range->low + 1.0 : HUGE_VAL;
}

constexpr double kMostCombinations = 1e15;  // of which a sampler's 10,000,000 points hardly repeat one

double combinations_of_all(const Study& study) {
  double product = 1.0;
  for (const Axis& axis : study.axes) { product *= values_of(axis); }
  return product;
}

}  // namespace

Points::Points(const Study& study, Facts facts, std::int64_t candidates)
    : study_(&study), facts_(std::move(facts)), candidates_(candidates) {
  const Sampler& sampler = study.sampler;
  if (sampler.kind == SamplerKind::latin_hypercube) {
    hypercube_ = std::make_shared<LatinHypercube>(study.axes.size(), sampler.points, sampler.seed);
  }
  if (sampler.kind == SamplerKind::sobol) { sobol_ = std::make_shared<Sobol>(study.axes.size(), sampler.seed); }
  may_repeat_ = (hypercube_ || sobol_) && combinations_of_all(study) < kMostCombinations;
}

std::vector<double> Points::parts(std::int64_t index) const {
  return hypercube_ ? hypercube_->at(index) : sobol_->at(index);
}

bool Points::is_repeated(std::int64_t index) {
  if (!may_repeat_) { return false; }
  const auto at = parts(index);
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const Axis& axis = study_->axes[i];
    const double count = values_of(axis);
    const double position =
        axis.range ? axis.range->at(at[i]) - axis.range->low : std::min(count - 1.0, std::floor(at[i] * count));
    key = key * static_cast<std::uint64_t>(count) + static_cast<std::uint64_t>(position);
  }
  return !seen_.insert(key).second;
}

Result<Points> Points::make(const Study& study, Facts facts) {
  const auto count = combinations(study);
  if (!count) {
    const config::Node* axes = study.tree.find(study.sampler.kind == SamplerKind::grid ? "axes" : "sampler");
    return fail(axes != nullptr ? axes->place : study.tree.place,
                fmt::format("the study has {:.4g} points; at most {} are valid: use fewer values, or a sampler "
                            "(sampler: {{kind: sobol, points: 10000}})",
                            product_of(study), kMostPoints));
  }
  return Points(study, std::move(facts), *count);
}

Point Points::candidate(std::int64_t index) const {
  Point point;
  const auto take = [&](const AxisValue& value) {
    point.columns.insert(point.columns.end(), value.cells.begin(), value.cells.end());
    point.settings.insert(point.settings.end(), value.settings.begin(), value.settings.end());
  };
  if (hypercube_ || sobol_) {
    const auto at = parts(index);
    for (std::size_t i = 0; i < study_->axes.size(); ++i) { take(study_->axes[i].at(at[i])); }
    return point;
  }
  std::vector<std::size_t> digits(study_->axes.size());
  for (std::size_t i = digits.size(); i-- > 0;) {
    const auto count = static_cast<std::int64_t>(study_->axes[i].values.size());
    digits[i] = static_cast<std::size_t>(index % count);
    index /= count;
  }
  for (std::size_t i = 0; i < digits.size(); ++i) { take(study_->axes[i].values[digits[i]]); }
  return point;
}

namespace {

config::Node written(const Derived& derived, double value) {
  const double number = value / derived.unit_size;
  const double whole = std::round(number);
  const bool is_whole = std::abs(number - whole) <= 1e-9 * std::abs(number) && std::abs(whole) < 1e15;
  std::string text = is_whole ? fmt::format("{:.0f}", whole) : fmt::format("{}", number);
  if (!derived.unit.empty()) { text += " " + derived.unit; }
  return config::plain_node(std::move(text), derived.place);
}

}  // namespace

void Points::derive(Point& point) const {
  for (const Derived& one : study_->derived) {
    const auto value = one.formula.value(names_at(*study_, point, facts_));
    if (!value) {
      if (point.problem.empty()) {
        point.problem = fmt::format("{} = {}: {}", one.column.path, one.formula.text(), value.error());
      }
      point.columns.emplace_back();
      continue;
    }
    if (const double* number = results::number_of(*value)) {
      point.settings.push_back({one.column.path, written(one, *number)});
    } else {
      point.settings.push_back({one.column.path, config::plain_node(std::get<std::string>(*value), one.place)});
    }
    point.columns.push_back(*value);
  }
}

bool Points::is_selected(Point& point) const {
  for (const Formula& condition : study_->where) {
    if (!point.problem.empty()) { return true; }
    const auto holds = condition.holds(names_at(*study_, point, facts_));
    if (!holds) { point.problem = fmt::format("where {}: {}", condition.text(), holds.error()); }
    if (holds && !*holds) { return false; }
  }
  return true;
}

std::optional<Point> Points::next() {
  while (index_ < candidates_) {
    const std::int64_t index = index_++;
    if (is_repeated(index)) { continue; }
    Point point = candidate(index);
    derive(point);
    if (!is_selected(point)) { continue; }
    point.id = id_++;
    return point;
  }
  return std::nullopt;
}

std::optional<Point> Points::skip_to(std::int64_t id) {
  if (has_all_candidates()) { index_ = id_ = id; }
  while (auto point = next()) {
    if (point->id == id) { return point; }
  }
  return std::nullopt;
}

namespace {

std::optional<StudyCell> column_at(const std::vector<results::StudyColumn>& columns,
                                   const std::vector<StudyCell>& cells, const std::string& name, std::size_t& offset) {
  for (const auto& column : columns) {
    if ((column.name == name || column.path == name) && offset < cells.size()) { return cells[offset]; }
    ++offset;
  }
  return std::nullopt;
}

std::optional<StudyCell> metric_of(const results::StudyRow& row, const std::string& name) {
  for (std::size_t i = 0; i < results::kMetricNames.size(); ++i) {
    if (results::kMetricNames[i] == name && row.metrics[i]) { return StudyCell(*row.metrics[i]); }
  }
  return std::nullopt;
}

}  // namespace

Lookup names_at(const Study& study, const Point& point, const Facts& facts, const results::StudyRow* row) {
  return [&study, &point, &facts, row](const std::string& name) -> std::optional<StudyCell> {
    for (const auto& [known, value] : study.constants) {
      if (known == name) { return value; }
    }
    const auto& cells = row != nullptr ? row->columns : point.columns;
    std::size_t offset = 0;
    for (const Axis& axis : study.axes) {
      if (auto cell = column_at(axis.columns, cells, name, offset)) { return cell; }
    }
    for (const auto* list : {&study.derived, &study.figures}) {
      for (const Derived& one : *list) {
        if (auto cell = column_at({one.column}, cells, name, offset)) { return cell; }
      }
    }
    if (row != nullptr) {
      if (auto metric = metric_of(*row, name)) { return metric; }
    }
    return facts ? facts(name, point.settings) : std::nullopt;
  };
}

}  // namespace orrery::study
