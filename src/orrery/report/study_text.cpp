#include <cmath>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/study.hpp"
#include "orrery/study/formula.hpp"

namespace orrery::report {

using config::JsonValue;
using config::Node;
using results::Metric;
using results::StudyStatus;

std::string threshold_unit(const results::StudyInfo& info) {
  const auto tree = config::parse_json(info.study, {});
  const Node* threshold = tree ? tree->find("threshold") : nullptr;
  const Node* from = threshold != nullptr ? threshold->find("from") : nullptr;
  const auto quantity = from != nullptr ? study::quantity_of(from->scalar) : std::nullopt;
  return quantity ? quantity->unit : std::string();
}

std::string cell_text(const results::StudyCell& cell, const std::string& unit) {
  if (const std::string* text = results::text_of_cell(cell)) { return *text; }
  const double* number = results::number_of(cell);
  if (number == nullptr) { return "-"; }
  if (unit == "B") { return config::format_bytes(Bytes(*number)); }
  if (unit == "s") { return config::format_seconds(Seconds(*number)); }
  if (unit == "B/s") { return config::format_rate(BytesPerSecond(*number)); }
  if (unit == "FLOP/s") { return config::format_rate(FlopsPerSecond(*number)); }
  const bool whole = *number == std::round(*number) && std::abs(*number) < 1e15;
  const std::string text = whole ? fmt::format("{:.0f}", *number) : fmt::format("{:.4g}", *number);
  return unit.empty() ? text : text + " " + unit;
}

namespace {

std::string settings_text(const StudyEnd& end, const results::StudyRow& row) {
  std::string text;
  for (std::size_t i = 0; i < end.columns.size() && i < row.columns.size(); ++i) {
    const auto& column = end.columns[i];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", column.path, cell_text(row.columns[i], column.unit));
  }
  return text;
}

std::string metric_text(const results::StudyRow& row, Metric metric) {
  const auto& value = row.of(metric);
  const std::string name(results::kMetricNames[static_cast<std::size_t>(metric)]);
  return value ? cell_text(*value, std::string(results::metric_unit(name))) : "-";
}

}  // namespace

std::string study_text(const StudyEnd& end, TextStyle) {
  const auto& counts = end.summary.counts;
  std::string text = fmt::format("{}{}: {} points in {}\n", end.info.name.empty() ? "study" : end.info.name,
                                 end.info.semantics == "physical" ? "" : " (" + end.info.semantics + ")",
                                 counts[0] + counts[1] + counts[2], end.database);
  text += fmt::format("  ok          {}\n  infeasible  {}\n  failed      {}\n", counts[0], counts[1], counts[2]);
  if (!end.summary.best) { return text + "  no point is ok; the column \"reason\" says why\n"; }
  const auto& best = *end.summary.best;
  text += fmt::format("{} {}: point {}\n", results::is_more_better(end.info.objective) ? "most" : "least",
                      end.info.objective, best.id);
  if (const auto settings = settings_text(end, best); !settings.empty()) { text += fmt::format("  {}\n", settings); }
  text += fmt::format("  step time {}, {} devices, cost of a step {}, energy {}, price {}\n",
                      metric_text(best, Metric::step_time_s), metric_text(best, Metric::devices),
                      metric_text(best, Metric::cost_usd), metric_text(best, Metric::energy_J),
                      metric_text(best, Metric::price_usd));
  if (best.of(Metric::threshold)) {
    text += fmt::format("  threshold {}: {}\n", cell_text(*best.of(Metric::threshold), threshold_unit(end.info)),
                        best.reason);
  }
  if (!best.plan.empty()) { text += fmt::format("  plan {}\n", best.plan); }
  for (const auto& one : end.sensitivities) {
    const std::string result = one.step_time_s
                                   ? fmt::format("{:+.2f} %", 100.0 * (*one.step_time_s / one.base_step_time_s - 1.0))
                                   : "not computed: " + one.reason;
    text += fmt::format("  {} x {:.4g}: step time {}\n", one.path, one.factor, result);
  }
  return text;
}

namespace {

JsonValue value_of_cell(const results::StudyCell& cell) {
  if (const double* number = results::number_of(cell)) { return *number; }
  if (const std::string* text = results::text_of_cell(cell)) { return *text; }
  return nullptr;
}

Node best_json(const StudyEnd& end, const results::StudyRow& row) {
  Node json = config::json_object({{"id", row.id}});
  for (std::size_t i = 0; i < end.columns.size() && i < row.columns.size(); ++i) {
    config::set_field(json, end.columns[i].name, value_of_cell(row.columns[i]));
  }
  for (std::size_t i = 0; i < results::kMetricNames.size(); ++i) {
    config::set_field(json, results::kMetricNames[i], JsonValue(row.metrics[i]));
  }
  if (const auto plan = config::parse_json(row.plan, {}); plan) { config::set_field(json, "plan", *plan); }
  return json;
}

}  // namespace

std::string study_json(const StudyEnd& end) {
  const auto& counts = end.summary.counts;
  Node json =
      config::json_object({{"schema", "orrery.explore/1"},
                           {"name", end.info.name},
                           {"database", end.database},
                           {"semantics", end.info.semantics},
                           {"points", counts[0] + counts[1] + counts[2]},
                           {"ok", counts[0]},
                           {"infeasible", counts[1]},
                           {"failed", counts[2]},
                           {"objective", end.info.objective},
                           {"best", end.summary.best ? best_json(end, *end.summary.best) : config::null_node()}});
  config::add_fields(json, {{"sensitivities", config::json_list(end.sensitivities, [](const auto& one) {
                               return config::json_object({{"path", one.path},
                                                           {"factor", one.factor},
                                                           {"step_time_s", one.step_time_s},
                                                           {"base_step_time_s", one.base_step_time_s},
                                                           {"reason", one.reason}});
                             })}});
  return config::json_document(json);
}

}  // namespace orrery::report
