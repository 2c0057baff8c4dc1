#include "orrery/validate/validate.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/parallel_for.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/validate/csv.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/statistics.hpp"
#include "orrery/validate/training_row.hpp"

namespace orrery::validate {

namespace {

constexpr const char* kKind = "training";
constexpr const char* kAllFamilies = "overall";

// Rows of all tables, in order. `rows` is all that predictions see; `predictions` holds what identifies and measures.
struct Table {
  std::vector<TrainingRow> rows;
  std::vector<results::Prediction> predictions;
};

// A blank, zero or negative time is no measurement. Text that is no number is a mistake.
Result<std::optional<double>> measurement(const Csv& csv, const CsvRow& row) {
  const std::string_view text = cell_text(csv, row, "step_time_s");
  if (text.empty()) { return std::nullopt; }
  const auto value = number(text);
  if (!value) {
    return fail({csv.file, row.line, 0, "step_time_s"}, fmt::format("{} is not a number of seconds", quoted(text)));
  }
  return *value > 0.0 ? value : std::nullopt;
}

bool wanted(const std::vector<std::string>& families, const std::string& family) {
  return families.empty() || std::find(families.begin(), families.end(), family) != families.end();
}

void note_family(std::vector<std::string>& seen, const std::string& family) {
  if (std::find(seen.begin(), seen.end(), family) == seen.end()) { seen.push_back(family); }
}

Result<std::vector<std::string>> append_file(Table& table, const std::string& file,
                                             const std::vector<std::string>& families) {
  ORRERY_TRY(csv, read_csv(file));
  ORRERY_TRY(columns, TrainingColumns::of(csv));
  std::vector<std::string> seen;
  std::vector<Diagnostic> complaints;
  for (const auto& line : csv.rows) {
    TrainingRow row = columns.row(line);
    note_family(seen, row.family);
    if (!wanted(families, row.family)) { continue; }
    results::Prediction prediction;
    prediction.id = cell_text(csv, line, "id");
    prediction.family = row.family;
    if (auto measured = measurement(csv, line)) {
      prediction.measured_s = *measured;
    } else {
      complaints.push_back(std::move(measured.error().diagnostics.front()));
    }
    table.rows.push_back(std::move(row));
    table.predictions.push_back(std::move(prediction));
  }
  if (!complaints.empty()) { return tl::make_unexpected(Failure{std::move(complaints)}); }
  return seen;
}

// Every family asked for must be in some table.
Result<Table> read_tables(const std::vector<std::string>& files, const std::vector<std::string>& families) {
  Table table;
  std::vector<std::string> seen;
  for (const auto& file : files) {
    ORRERY_TRY(found, append_file(table, file, families));
    for (const auto& family : found) { note_family(seen, family); }
  }
  for (const auto& family : families) {
    if (std::find(seen.begin(), seen.end(), family) != seen.end()) { continue; }
    const auto near = nearest(family, seen);
    return fail({{}, 0, 0, "--family"}, fmt::format("no row is of family {}{}", quoted(family),
                                                    near ? fmt::format("; did you mean {}?", quoted(*near))
                                                         : fmt::format("; the tables have {}", join(seen, ", "))));
  }
  return table;
}

void predict(results::Prediction& prediction, const TrainingRow& row, const Parts& parts) {
  const auto scenario = scenario_of(row, parts);
  if (!scenario) {
    prediction.skipped_reason = scenario.error();
    return;
  }
  estimate::Estimator estimator(scenario->model, scenario->cluster, *scenario->stack, scenario->job);
  const Seconds time = estimator.step_time(scenario->plan);
  ORRERY_ASSERT(is_finite(time));
  prediction.predicted_s = time.value();
  prediction.feasible = estimator.memory(scenario->plan).fits;
}

std::vector<results::FamilyScore> family_scores(const std::vector<results::Prediction>& predictions) {
  std::vector<std::string> names;
  for (const auto& prediction : predictions) { note_family(names, prediction.family); }
  std::vector<results::FamilyScore> scores;
  for (const auto& name : names) {
    std::vector<const results::Prediction*> members;
    for (const auto& prediction : predictions) {
      if (prediction.family == name) { members.push_back(&prediction); }
    }
    scores.push_back(score(kKind, name, members));
  }
  return scores;
}

}  // namespace

Result<results::Validation> validate_training(const hardware::Catalogue& catalogue,
                                              const std::vector<std::string>& files,
                                              const std::vector<std::string>& families) {
  ORRERY_TRY(table, read_tables(files, families));
  ORRERY_TRY(parts, parts_for(catalogue, table.rows));
  parallel_for(table.rows.size(), 0, [&](std::size_t i) { predict(table.predictions[i], table.rows[i], parts); });
  results::Validation validation;
  validation.families = family_scores(table.predictions);
  std::vector<const results::Prediction*> all;
  for (const auto& prediction : table.predictions) { all.push_back(&prediction); }
  validation.overall = score(kKind, kAllFamilies, all);
  validation.predictions = std::move(table.predictions);
  return validation;
}

}  // namespace orrery::validate
