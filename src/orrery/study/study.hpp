// A study: a base scenario, axes over anything that a scenario can say, and what to compute at each point.
//
// The file is described in docs/format/study.md. This room knows paths and values, not their meaning: what a setting
// does is the evaluator's (run.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/results/study.hpp"
#include "orrery/study/formula.hpp"

namespace orrery::study {

inline constexpr std::int64_t kMostPoints = 10'000'000;

// A value at a path of the scenario: "cluster.second_tier.bandwidth".
struct Setting {
  std::string path;
  config::Node value;
};

// Values between two ends, for grids with a number of points and for samplers.
struct Range {
  double low = 0.0, high = 0.0;  // in `unit`
  std::string unit;              // as written: "GB/s"; empty: a number
  bool is_log = false;
  bool is_whole = false;  // both ends are whole numbers without a unit
  Place place;

  // `part` from 0 to 1.
  [[nodiscard]] double at(double part) const;
  [[nodiscard]] config::Node node(double value) const;
};

struct AxisValue {
  std::vector<StudyCell> cells;  // one per column of the axis
  std::vector<Setting> settings;
};

struct Axis {
  std::vector<results::StudyColumn> columns;
  std::vector<AxisValue> values;  // in the order of the file
  std::optional<Range> range;     // of samplers: any value of it
  Place place;

  // A sampler's value.
  [[nodiscard]] AxisValue at(double part) const;
};

// A value that follows from others. `unit_size`: of the unit that it is written in.
struct Derived {
  results::StudyColumn column;
  Formula formula;
  std::string unit;
  double unit_size = 1.0;
  bool is_whole = false;  // written as a whole number if it is one
  Place place;
};

enum class Inner : std::uint8_t { given, search };
enum class SamplerKind : std::uint8_t { grid, latin_hypercube, sobol };

struct Sampler {
  SamplerKind kind = SamplerKind::grid;
  std::int64_t points = 0;  // not of a grid
  std::uint64_t seed = 0;
};

// The smallest value of `path` from which the first plan has the shorter step.
struct Threshold {
  std::string path;
  Range range;
  double tolerance = 0.01;   // relative
  std::int64_t samples = 9;  // looked at before bisection, to see whether the answer is monotone
  std::vector<Setting> first, second;
};

struct Sensitivities {
  double factor = 1.1;
  std::vector<std::string> paths;
};

struct Study {
  std::string file, name, description;
  config::Node tree;  // the whole file
  config::Node base;  // a scenario
  std::vector<std::pair<std::string, StudyCell>> constants;
  std::vector<Axis> axes;
  std::vector<Derived> derived;  // settings that follow from axes
  std::vector<Derived> figures;  // columns that follow from results
  std::vector<Formula> where;    // which points there are
  std::vector<Formula> constraints;
  Inner inner = Inner::given;
  std::string space;    // of the search: "default", "wide" or a file
  config::Node search;  // values that restrict it
  Sampler sampler;
  std::optional<Threshold> threshold;
  std::optional<Sensitivities> sensitivities;
  std::string objective = "step_time_s";
  std::vector<std::string> front;

  // Of the axes, then the derived values, then the figures.
  [[nodiscard]] std::vector<results::StudyColumn> columns() const;
};

// The cell of a value as it is written.
[[nodiscard]] StudyCell cell_of(const config::Node& value);

[[nodiscard]] Result<Study> read_study(const std::string& path);
[[nodiscard]] Result<Study> study_of(config::Node tree, std::string file);

}  // namespace orrery::study
