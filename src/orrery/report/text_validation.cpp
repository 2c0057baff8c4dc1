#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"
#include "orrery/report/text.hpp"

namespace orrery::report {

namespace {

constexpr std::size_t kWorstRows = 10;
constexpr std::string_view kServing = "serving";

std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", 100.0 * fraction); }

void add_score(Table& table, const std::string& name, const results::FamilyScore& score) {
  const auto error = [&](double value) { return score.scored > 0 ? percent(value) : std::string("-"); };
  table.row({name, std::to_string(score.rows), std::to_string(score.predicted), std::to_string(score.skipped),
             std::to_string(score.scored), error(score.mape), error(score.median_ape), error(score.p90_ape),
             error(score.max_ape), score.scored > 0 ? signed_percent(score.bias) : std::string("-"),
             score.ranged > 0 ? percent(static_cast<double>(score.covered) / static_cast<double>(score.ranged))
                              : std::string("-"),
             score.ranged > 0 ? percent(score.width) : std::string("-"), std::to_string(score.infeasible)});
}

std::string score_table(const results::Validation& validation) {
  Table table;
  table.column("family", Table::Align::left);
  for (const char* header : {"rows", "predicted", "skipped", "scored", "MAPE", "median", "p90", "max", "bias"}) {
    table.column(header);
  }
  table.column("in 80 %").column("width").column("infeasible");
  const auto of_family = [](const results::FamilyScore& score) { return std::pair(score.kind, score.family); };
  std::set<std::pair<std::string, std::string>> scored, shown;
  for (const auto& score : validation.families) {
    if (score.scored > 0) { scored.insert(of_family(score)); }
  }
  for (const auto& score : validation.families) {
    // Of a family without any prediction, one row is enough.
    const bool has_others = scored.contains(of_family(score)) || shown.contains(of_family(score));
    if (!score.metric.empty() && score.scored == 0 && (score.predicted > 0 || has_others)) { continue; }
    shown.insert(of_family(score));
    const std::string metric = score.metric.empty() ? "" : " " + score.metric;
    add_score(table, score.kind + "/" + score.family + metric, score);
  }
  if (validation.kinds.size() > 1) {
    for (const auto& score : validation.kinds) {
      if (score.kind != kServing) { add_score(table, score.kind, score); }
    }
  }
  // Percentiles of times and rates have no common error.
  const bool is_serving = validation.kinds.size() == 1 && validation.kinds.front().kind == kServing;
  if (!is_serving) { add_score(table, "all", validation.overall); }
  return table.text();
}

std::string serving_table(const std::vector<results::ServingScore>& scores) {
  Table table;
  table.column("serving, p50 (else mean)", Table::Align::left);
  table.column("rows").column("median").column("configurations x loads").column("median of |ln|");
  for (const auto& score : scores) {
    table.row({"  " + score.figure, std::to_string(score.rows), percent(score.median_ape), std::to_string(score.groups),
               percent(score.grouped_log)});
  }
  return table.text() +
         "  (a configuration with a load has the weight of one row in the last column; throughput where "
         "Little's law holds)\n";
}

std::vector<const results::Prediction*> worst_rows(const std::vector<results::Prediction>& predictions) {
  std::vector<const results::Prediction*> rows;
  for (const auto& row : predictions) {
    if (row.signed_error()) { rows.push_back(&row); }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return std::abs(*a->signed_error()) > std::abs(*b->signed_error());
  });
  rows.resize(std::min(rows.size(), kWorstRows));
  return rows;
}

std::string worst_table(const std::vector<const results::Prediction*>& rows) {
  Table table;
  table.column("largest errors", Table::Align::left).column("family", Table::Align::left);
  table.column("measured").column("predicted").column("error");
  for (const auto* row : rows) {
    const auto value = [&](double number) {
      return row->metric.empty() ? config::format_seconds(Seconds(number)) : fmt::format("{:.4g}", number);
    };
    const std::string name = row->metric.empty() ? cut_to(row->id, 40) : fmt::format("{} {}", row->id, row->metric);
    table.row({"  " + cut_to(name, 40), cut_to(row->family, 20), value(*row->measured_s), value(*row->predicted_s),
               signed_percent(*row->signed_error())});
  }
  return table.text();
}

// The terms of predictions, if requested.
std::string terms_lines(const std::vector<results::Prediction>& predictions) {
  std::string text;
  for (const auto& row : predictions) {
    if (row.terms.empty()) { continue; }
    std::vector<std::string> parts;
    for (const auto& term : row.terms) {
      parts.push_back(fmt::format("{} {}", term.name, config::format_seconds(Seconds(term.seconds))));
    }
    text += wrapped_list(fmt::format("  {} {}: ", row.id, signed_percent(*row.signed_error())), parts);
  }
  return text.empty() ? text : "\nterms of the predictions with the largest errors of each family\n" + text;
}

// Reasons by the number of their rows, then in order of occurrence. `reason_of` returns the reason of a row; empty: the
// row is not in the table. Figures of one row, which follow each other, count once.
template <class ReasonOf>
std::string reasons_table(const std::vector<results::Prediction>& predictions, std::string_view title,
                          const ReasonOf& reason_of) {
  std::vector<std::pair<std::string, int>> reasons;
  const results::Prediction* last = nullptr;  // with a reason
  for (const auto& row : predictions) {
    const std::string& reason = reason_of(row);
    if (reason.empty()) { continue; }
    const bool same_row = last != nullptr && !row.metric.empty() && row.id == last->id && reason_of(*last) == reason;
    last = &row;
    if (same_row) { continue; }
    const auto found =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& known) { return known.first == reason; });
    if (found == reasons.end()) {
      reasons.emplace_back(reason, 1);
    } else {
      ++found->second;
    }
  }
  if (reasons.empty()) { return {}; }
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = fmt::format("\n{}\n", title);
  for (const auto& [reason, count] : reasons) { text += wrapped(fmt::format("{:>6}  ", count), reason); }
  return text;
}

std::string contradictions_line(const std::vector<results::Prediction>& predictions) {
  const auto count = std::count_if(predictions.begin(), predictions.end(),
                                   [](const auto& row) { return row.predicted_s && !row.taken_as.empty(); });
  if (count == 0) { return {}; }
  return fmt::format("\n{} predicted although columns contradict each other (--out writes the values used)\n",
                     counted(count, "row"));
}

}  // namespace

std::string validation_text(const results::Validation& validation, TextStyle style) {
  std::string text = bold("predicted and measured times", style) + "\n\n" + score_table(validation);
  if (!validation.serving.empty()) { text += "\n" + serving_table(validation.serving); }
  if (const auto rows = worst_rows(validation.predictions); !rows.empty()) { text += "\n" + worst_table(rows); }
  text += terms_lines(validation.predictions);
  const std::string none;
  // A row with other figures is not skipped because of one that nobody measured.
  std::set<std::string_view> predicted;
  for (const auto& row : validation.predictions) {
    if (row.predicted_s && !row.metric.empty()) { predicted.insert(row.id); }
  }
  text += reasons_table(validation.predictions, "skipped rows", [&](const auto& row) -> const std::string& {
    return row.predicted_s || (!row.measured_s && predicted.contains(row.id)) ? none : row.skipped_reason;
  });
  text += reasons_table(
      validation.predictions, "rows predicted but not scored",
      [&](const auto& row) -> const std::string& { return row.predicted_s ? row.unscored_reason : none; });
  return text + contradictions_line(validation.predictions);
}

}  // namespace orrery::report
