// The points of a study in a fixed order: the last axis changes fastest. Points are walked, not stored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/study/sampling.hpp"
#include "orrery/study/study.hpp"

namespace orrery::study {

struct Point {
  std::int64_t id = 0;
  std::vector<StudyCell> columns;  // of the axes and derived values
  std::vector<Setting> settings;   // in the order of axes, then derived values; later ones have priority
  std::string problem;             // why a derived value has no value; empty: none
};

// A field of the scenario with these settings: "cluster.node_price_usd". Nothing: it has none.
using Facts = std::function<std::optional<StudyCell>(const std::string& path, const std::vector<Setting>& settings)>;

class Points {
 public:
  // Fails for more than kMostPoints candidates: combinations of values before `where` selects.
  [[nodiscard]] static Result<Points> make(const Study& study, Facts facts);

  // The next point that `where` selects. Of samplers whose axes are all lists or ranges of whole numbers, a combination
  // is a point once. A condition that cannot be evaluated selects the point, with its problem.
  [[nodiscard]] std::optional<Point> next();
  // Continues with point `id`, which must not be behind.
  [[nodiscard]] std::optional<Point> skip_to(std::int64_t id);
  [[nodiscard]] std::int64_t candidates() const { return candidates_; }
  // Whether every candidate is a point.
  [[nodiscard]] bool has_all_candidates() const { return study_->where.empty() && !may_repeat_; }

 private:
  Points(const Study& study, Facts facts, std::int64_t candidates);
  [[nodiscard]] std::vector<double> parts(std::int64_t index) const;
  [[nodiscard]] Point candidate(std::int64_t index) const;
  [[nodiscard]] bool is_repeated(std::int64_t index);
  void derive(Point& point) const;
  [[nodiscard]] bool is_selected(Point& point) const;

  const Study* study_;
  Facts facts_;
  std::int64_t candidates_ = 0, index_ = 0, id_ = 0;
  std::shared_ptr<const LatinHypercube> hypercube_;
  std::shared_ptr<const Sobol> sobol_;
  bool may_repeat_ = false;
  std::unordered_set<std::uint64_t> seen_;  // combinations, as positions of values in mixed radix
};

// Names of formulas at a point: constants, columns, figures of the row, fields of the scenario.
[[nodiscard]] Lookup names_at(const Study& study, const Point& point, const Facts& facts,
                              const results::StudyRow* row = nullptr);

}  // namespace orrery::study
