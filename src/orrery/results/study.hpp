// Results of a study: one row per point, and the axes that its columns come from. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace orrery::results {

// A value of an axis: a number (SI units), a text, or nothing.
using StudyCell = std::variant<std::monostate, double, std::string>;

[[nodiscard]] inline const double* number_of(const StudyCell& cell) { return std::get_if<double>(&cell); }
[[nodiscard]] inline const std::string* text_of_cell(const StudyCell& cell) { return std::get_if<std::string>(&cell); }

enum class StudyStatus : std::uint8_t {
  ok,
  infeasible,  // the point can be priced and violates a limit: memory, or a constraint of the study
  failed,      // the point has no price: it cannot be laid out, or a value is not valid with the others
};
inline constexpr std::array<std::string_view, 3> kStudyStatusNames{"ok", "infeasible", "failed"};

// Figures of a point, in the order of the database's columns.
enum class Metric : std::uint8_t {
  devices,
  step_time_s,
  samples_per_s,
  tokens_per_s,
  mfu,
  cost_usd,           // of a step
  energy_J,           // of a step
  power_W,            // nameplate, of the whole cluster
  price_usd,          // purchase of the whole cluster
  memory_B,           // of the fullest rank, in the first tier
  memory_capacity_B,  // of a device, less the reserve
  model_states_B,     // weights, gradients and optimizer state of the fullest rank, first tier
  second_tier_B,      // of the rank with most in the second tier
  threshold,          // of studies with a threshold: the value at which the first plan starts to win
};
inline constexpr std::array<std::string_view, 14> kMetricNames{
    "devices",           "step_time_s",    "samples_per_s", "tokens_per_s", "mfu",
    "cost_usd",          "energy_J",       "power_W",       "price_usd",    "memory_B",
    "memory_capacity_B", "model_states_B", "second_tier_B", "threshold"};

// The unit of a figure, which its name ends with; empty: none.
[[nodiscard]] constexpr std::string_view metric_unit(std::string_view metric) {
  if (metric.ends_with("_per_s")) { return "1/s"; }
  if (metric.ends_with("_usd")) { return "USD"; }
  for (const std::string_view unit : {"s", "J", "W", "B"}) {
    if (metric.ends_with(unit) && metric.substr(0, metric.size() - 1).ends_with('_')) { return unit; }
  }
  return {};
}

// Whether the best value of a column is its largest one. All others are minimized, a study's own figures too.
[[nodiscard]] constexpr bool is_more_better(std::string_view column) {
  return column == "samples_per_s" || column == "tokens_per_s" || column == "mfu";
}

struct StudyRow {
  std::int64_t id = 0;             // position in the study, from 0
  std::vector<StudyCell> columns;  // one per column of the study
  StudyStatus status = StudyStatus::ok;
  std::string reason;  // why it is infeasible or failed; of a threshold: what was found
  std::array<std::optional<double>, kMetricNames.size()> metrics;
  std::string plan;        // JSON object; empty: none
  std::string breakdown;   // JSON object, seconds
  std::string comm;        // JSON object: total and exposed seconds by group
  std::string passes;      // JSON object: seconds of kernels, and exposed ones by group, of each pass
  std::string memory;      // JSON object: bytes by class and tier
  std::string input_hash;  // of everything that the row depends on, but the version of the program

  [[nodiscard]] std::optional<double>& of(Metric metric) { return metrics[static_cast<std::size_t>(metric)]; }
  [[nodiscard]] const std::optional<double>& of(Metric metric) const {
    return metrics[static_cast<std::size_t>(metric)];
  }
  friend bool operator==(const StudyRow&, const StudyRow&) = default;
};

// A column of the points: an axis, or a value that is derived from axes.
struct StudyColumn {
  std::string name;  // of the column: "cluster_second_tier_bandwidth"
  std::string path;  // in a scenario: "cluster.second_tier.bandwidth"; of a choice: its name
  std::string unit;  // "B/s"; empty: none
  bool is_derived = false;
  friend bool operator==(const StudyColumn&, const StudyColumn&) = default;
};

// What one more of a resource gives, at the best point of a study.
struct Sensitivity {
  std::int64_t point = 0;
  std::string path;
  double factor = 1.0;                // of the resource
  std::optional<double> step_time_s;  // with it; nothing: no plan
  double base_step_time_s = 0.0;
  std::string reason;
  friend bool operator==(const Sensitivity&, const Sensitivity&) = default;
};

struct StudyInfo {
  std::string name, description;
  std::string version;             // of Orrery
  std::string semantics;           // "physical", "mad-max"
  std::string study;               // the study as canonical JSON
  std::string hash;                // of it and of the catalogue entries that it names
  std::string inputs;              // JSON object: catalogue entry or file -> hash
  std::string objective;           // column whose best value is looked for
  std::int64_t points = 0;         // number of rows when it is complete
  std::vector<std::string> front;  // columns of the Pareto front
  std::vector<std::string> not_modelled;
  friend bool operator==(const StudyInfo&, const StudyInfo&) = default;
};

struct StudySummary {
  std::array<std::int64_t, 3> counts{};  // [StudyStatus]
  std::optional<StudyRow> best;
};

// A whole database.
struct StudyTable {
  StudyInfo info;
  std::vector<StudyColumn> columns;
  std::vector<StudyRow> rows;  // by id
  std::vector<Sensitivity> sensitivities;
};

}  // namespace orrery::results
