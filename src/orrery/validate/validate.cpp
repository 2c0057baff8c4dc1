#include "orrery/validate/validate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/parallel_for.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/spread.hpp"
#include "orrery/validate/commands.hpp"
#include "orrery/validate/csv.hpp"
#include "orrery/validate/figures.hpp"
#include "orrery/validate/kind.hpp"
#include "orrery/validate/measurement.hpp"
#include "orrery/validate/outcome.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/serving_rows.hpp"
#include "orrery/validate/setups.hpp"
#include "orrery/validate/spelling.hpp"
#include "orrery/validate/statistics.hpp"

namespace orrery::validate {

namespace {

constexpr const char* kAll = "overall";

// The tables in data/measurements. Rows of servers have many figures each, and those of PyTorch are of two cards: they
// would outweigh the others.
struct ShippedTable {
  std::string_view name;
  bool by_default = true;
};
constexpr std::array kShipped = {
    ShippedTable{"training"},       ShippedTable{"training_vtrain_single_node"},
    ShippedTable{"dlrm_moe"},       ShippedTable{"inference"},
    ShippedTable{"kernels"},        ShippedTable{"collectives"},
    ShippedTable{"commands"},       ShippedTable{"serving", false},
    ShippedTable{"pytorch", false}, ShippedTable{"pytorch_kernels", false},
};

std::string shipped_file(const std::string& data_directory, std::string_view name) {
  return fmt::format("{}/measurements/{}.csv", data_directory, name);
}

// A file, or a shipped table by its name.
Result<std::string> table_file(const std::string& data_directory, const std::string& given) {
  std::vector<std::string> names;
  for (const auto& table : kShipped) { names.emplace_back(table.name); }
  const bool is_file = std::filesystem::is_regular_file(given);
  if (!is_file && std::ranges::find(names, given) != names.end()) { return shipped_file(data_directory, given); }
  if (given.find_first_of("./") != std::string::npos || std::filesystem::exists(given)) { return given; }
  const auto near = nearest(given, names);
  return fail({{}, 0, 0, "--data"},
              fmt::format("{} is neither a file nor a table that ships; {}", quote(given),
                          near ? fmt::format("did you mean {}?", quote(*near)) : "tables: " + join(names, ", ")));
}

// Rows of all tables, in order. Predictions use `rows` only; `predictions` has ids and measurements.
struct Table {
  std::vector<AnyRow> rows;
  std::vector<results::Prediction> predictions;
  std::vector<ServingRow> serving;
  std::vector<results::Prediction> of_serving;  // one for each row and metric
};

bool requested(const std::vector<std::string>& families, const std::string& family) {
  return families.empty() || std::find(families.begin(), families.end(), family) != families.end();
}

void note(std::vector<std::string>& seen, const std::string& name) {
  if (std::find(seen.begin(), seen.end(), name) == seen.end()) { seen.push_back(name); }
}

template <class Row>
AnyRow any_row(Row row) {
  return row;
}

AnyRow any_row(TrainingRow row) {
  if (measured_by(row.metric) == Measured::step) { return row; }
  return ExpertRow{std::move(row)};
}

AnyRow any_row(CommandRow row) {
  if (auto kernel = kernel_of(row)) { return *kernel; }
  return row;
}

void set_table(Row&, const std::string&) {}
void set_table(CommandRow& row, const std::string& file) {
  row.table = file;
  if (row.family.empty()) { row.family = "commands"; }
}

// Adds the rows of one file; returns its families.
template <class Row>
Result<std::vector<std::string>> append(Table& table, const Csv& csv, TableKind kind, const Columns<Row>& columns,
                                        const std::vector<std::string>& families) {
  std::vector<std::string> seen;
  std::vector<Diagnostic> complaints;
  for (const auto& line : csv.rows) {
    Row row = columns.row(line);
    set_table(row, csv.file);
    note(seen, row.family);
    if (!requested(families, row.family)) { continue; }
    results::Prediction prediction;
    prediction.id = cell_text(csv, line, "id");
    prediction.kind = name_of(kind);
    prediction.family = row.family;
    if (auto measured = measurement_of(kind, csv, line)) {
      prediction.measured_s = measured->seconds;
      prediction.unscored_reason = std::move(measured->unscored_reason);
    } else {
      complaints.push_back(std::move(measured.error().diagnostics.front()));
    }
    table.rows.push_back(any_row(std::move(row)));
    table.predictions.push_back(std::move(prediction));
  }
  if (!complaints.empty()) { return tl::make_unexpected(Failure{std::move(complaints)}); }
  return seen;
}

// The metrics of a row, and the column of each.
std::vector<std::pair<std::string, std::string>> figures_of(const CampaignColumns&) {
  std::vector<std::pair<std::string, std::string>> figures;
  for (const auto metric : campaign_metrics()) { figures.emplace_back(metric, metric); }
  return figures;
}
std::vector<std::pair<std::string, std::string>> figures_of(const WanColumns& row) { return {{row.metric, "value"}}; }

// Rows with several figures: a prediction for each.
template <class Row>
Result<std::vector<std::string>> append_figures(Table& table, const Csv& csv, TableKind kind,
                                                std::span<const Field<Row>> fields,
                                                const std::vector<std::string>& families) {
  ORRERY_TRY(columns, Columns<Row>::of(csv, fields, name_of(kind)));
  std::vector<std::string> seen;
  for (const auto& line : csv.rows) {
    const Row row = columns.row(line);
    for (const auto& [metric, column] : figures_of(row)) {
      const std::string& family = kind == TableKind::campaigns ? metric : row.family;
      note(seen, family);
      if (!requested(families, family)) { continue; }
      ORRERY_TRY(measured, figure_measured(csv, line, column));
      results::Prediction prediction;
      prediction.id = cell_text(csv, line, "id");
      prediction.kind = name_of(kind);
      prediction.family = family;
      prediction.metric = metric;
      prediction.measured_s = measured.seconds;
      prediction.unscored_reason = measured.unscored_reason;
      FigureRow figure;
      figure.family = family;
      figure.unreadable = row.unreadable;
      figure.of = row;
      figure.metric = metric;
      table.rows.emplace_back(std::move(figure));
      table.predictions.push_back(std::move(prediction));
    }
  }
  return seen;
}

template <class Row>
Result<std::vector<std::string>> append_rows(Table& table, const Csv& csv, TableKind kind,
                                             std::span<const Field<Row>> fields,
                                             const std::vector<std::string>& families) {
  ORRERY_TRY(columns, Columns<Row>::of(csv, fields, name_of(kind)));
  return append(table, csv, kind, columns, families);
}

// Values of measured columns; predictions do not depend on them.
Result<std::optional<double>> measured_in(const Csv& csv, const CsvRow& line, std::string_view column) {
  const std::string_view text = cell_text(csv, line, column);
  if (text.empty()) { return std::nullopt; }
  const auto value = number(text);
  if (!value) {
    return fail({csv.file, line.line, 0, std::string(column)}, fmt::format("{} is not a number", quote(text)));
  }
  return *value > 0.0 ? value : std::nullopt;
}

// Whether a measured throughput is that of its own latencies: output rate x E2E / (output tokens x clients) is 1 but
// for the end of the run.
bool is_comparable(const Csv& csv, const CsvRow& line, std::string_view column) {
  constexpr double kLeast = 0.8, kMost = 1.1;
  if (column != "output_tokens_per_s") { return true; }
  const auto ratio = number(cell_text(csv, line, "little_ratio"));
  return ratio && *ratio >= kLeast && *ratio <= kMost;
}

// Whether a measured E2E is not that of the row's TTFT, TPOT and output: answers ended before `osl` tokens.
bool ended_early(const Csv& csv, const CsvRow& line, std::string_view column) {
  constexpr double kMost = 0.2;  // of their sum
  if (column != "e2e_mean_ms") { return false; }
  const auto value = [&](std::string_view name) { return number(cell_text(csv, line, name)); };
  const auto e2e = value(column), ttft = value("ttft_mean_ms"), tpot = value("tpot_mean_ms"), tokens = value("osl");
  if (!e2e || !ttft || !tpot || !tokens) { return false; }
  const double sum = *ttft + *tpot * (*tokens - 1.0);
  return std::abs(*e2e - sum) > kMost * sum;
}

// Why a figure of a row has no score; empty: it has one.
std::string suspicion(const Csv& csv, const CsvRow& line, std::string_view column) {
  const std::string_view reason = cell_text(csv, line, "unscored");
  if (!is_not_stated(reason)) { return std::string(reason); }
  if (cell_text(csv, line, "quality") == "suspect") { return "suspect"; }
  return ended_early(csv, line, column) ? "E2E is not TTFT + TPOT x (osl - 1) within 20 %" : "";
}

Result<std::vector<std::string>> append_serving(Table& table, const Csv& csv,
                                                const std::vector<std::string>& families) {
  ORRERY_TRY(columns, Columns<ServingRow>::of(csv, serving_fields(), name_of(TableKind::serving)));
  std::vector<std::string> seen;
  for (const auto& line : csv.rows) {
    ServingRow row = columns.row(line);
    note(seen, row.family);
    if (!requested(families, row.family)) { continue; }
    for (const ServingMetric& metric : serving_metrics()) {
      results::Prediction prediction;
      prediction.id = cell_text(csv, line, "id");
      prediction.kind = name_of(TableKind::serving);
      prediction.family = row.family;
      prediction.metric = metric.column;
      ORRERY_TRY(measured, measured_in(csv, line, metric.column));
      prediction.measured_s = measured;
      prediction.unscored_reason = suspicion(csv, line, metric.column);
      if (is_comparable(csv, line, metric.column)) {
        const auto configuration = cell_text(csv, line, "config_group");
        prediction.group =
            configuration.empty() ? prediction.id : fmt::format("{} {}", configuration, cell_text(csv, line, "load"));
      }
      table.of_serving.push_back(std::move(prediction));
    }
    table.serving.push_back(std::move(row));
  }
  return seen;
}

Result<std::vector<std::string>> append_file(Table& table, const std::string& file,
                                             const std::vector<std::string>& families) {
  ORRERY_TRY(csv, read_table(file));
  const TableKind kind = kind_of(csv);
  switch (kind) {
    case TableKind::training:
    case TableKind::dlrm_moe: return append_rows(table, csv, kind, training_fields(), families);
    case TableKind::inference: return append_rows(table, csv, kind, inference_fields(), families);
    case TableKind::kernels: return append_rows(table, csv, kind, kernel_fields(), families);
    case TableKind::collectives: return append_rows(table, csv, kind, collective_fields(), families);
    case TableKind::campaigns: return append_figures(table, csv, kind, campaign_fields(), families);
    case TableKind::wan: return append_figures(table, csv, kind, wan_fields(), families);
    case TableKind::serving: return append_serving(table, csv, families);
    case TableKind::commands: return append_rows(table, csv, kind, command_fields(), families);
  }
  throw_internal_error("known kind", __FILE__, __LINE__);
}

// Every requested family must be in some table.
Result<Table> read_tables(const std::vector<std::string>& files, const std::vector<std::string>& families) {
  Table table;
  std::vector<std::string> seen;
  for (const auto& file : files) {
    ORRERY_TRY(found, append_file(table, file, families));
    for (const auto& family : found) { note(seen, family); }
  }
  for (const auto& family : families) {
    if (std::find(seen.begin(), seen.end(), family) != seen.end()) { continue; }
    const auto near = nearest(family, seen);
    return fail({{}, 0, 0, "--family"}, fmt::format("unknown family {}{}", quote(family),
                                                    near ? fmt::format("; did you mean {}?", quote(*near))
                                                         : fmt::format("; valid: {}", join(seen, ", "))));
  }
  return table;
}

// An internal error in one row does not stop the others.
Skippable<Outcome> outcome_or_defect(const AnyRow& row, const Parts& parts) {
  try {
    auto outcome = outcome_of(row, parts);
    ORRERY_ASSERT(!outcome || is_finite(outcome->time));
    return outcome;
  } catch (const InternalError& error) { return tl::make_unexpected(fmt::format("internal error: {}", error.what())); }
}

// The 80 % interval of a predicted figure, by the kinds that it belongs to.
void set_range(results::Prediction& prediction, const std::vector<std::string>& kinds,
               const estimate::Spreads& spreads) {
  if (const auto range = estimate::uncertainty_of(spreads, kinds, Seconds(*prediction.predicted_s))) {
    prediction.p10_s = range->p10.value();
    prediction.p90_s = range->p90.value();
  }
  if (!kinds.empty()) { prediction.spread = kinds.front(); }
}

void predict(results::Prediction& prediction, const AnyRow& row, const Parts& parts, const estimate::Spreads& spreads) {
  const auto outcome = outcome_or_defect(row, parts);
  if (!outcome) {
    prediction.skipped_reason = outcome.error();
    return;
  }
  prediction.predicted_s = outcome->time.value();
  prediction.feasible = outcome->feasible;
  prediction.taken_as = outcome->taken_as;
  set_range(prediction, outcome->kinds, spreads);
}

Skippable<results::Serving> served_or_defect(const ServingRow& row, const std::string& data_directory) {
  try {
    return served(row, data_directory);
  } catch (const InternalError& error) { return tl::make_unexpected(fmt::format("internal error: {}", error.what())); }
}

void predict_serving(Table& table, const std::string& data_directory, const estimate::Spreads& spreads) {
  const auto metrics = serving_metrics();
  parallel_for(table.serving.size(), 0, [&](std::size_t i) {
    const auto run = served_or_defect(table.serving[i], data_directory);
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      results::Prediction& prediction = table.of_serving[i * metrics.size() + m];
      if (!run) {
        prediction.skipped_reason = run.error();
        continue;
      }
      const double value = metrics[m].of(*run);
      if (value > 0.0) {
        prediction.predicted_s = value;
        const std::string_view spread = spread_of(metrics[m], table.serving[i]);
        if (!spread.empty()) { set_range(prediction, {std::string(spread)}, spreads); }
      } else {
        prediction.skipped_reason = "no value: every answer has one token";
      }
    }
  });
}

// Terms of the `worst` rows of each family.
void add_terms(std::vector<results::Prediction>& predictions, const std::vector<AnyRow>& rows, const Parts& parts,
               std::size_t worst) {
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (predictions[i].signed_error()) { families[{predictions[i].kind, predictions[i].family}].push_back(i); }
  }
  for (auto& [name, members] : families) {
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(*predictions[a].signed_error()) > std::abs(*predictions[b].signed_error());
    });
    members.resize(std::min(members.size(), worst));
    for (const std::size_t i : members) { predictions[i].terms = terms_of(rows[i], parts); }
  }
}

// The score of the predictions that `belongs` to.
template <class Belongs>
results::FamilyScore score_of(const results::Validation& validation, const std::string& kind, const std::string& family,
                              const Belongs& belongs) {
  std::vector<const results::Prediction*> members;
  for (const auto& prediction : validation.predictions) {
    if (belongs(prediction)) { members.push_back(&prediction); }
  }
  return score(kind, family, members);
}

// Per kind and family, per kind, and of all.
void add_scores(results::Validation& validation) {
  std::vector<std::array<std::string, 3>> families;  // kind, family, metric
  std::vector<std::string> kinds;
  for (const auto& prediction : validation.predictions) {
    const std::array name{prediction.kind, prediction.family, prediction.metric};
    if (std::find(families.begin(), families.end(), name) == families.end()) { families.push_back(name); }
    note(kinds, prediction.kind);
  }
  for (const auto& name : families) {
    validation.families.push_back(score_of(validation, name[0], name[1], [&](const results::Prediction& prediction) {
      return prediction.kind == name[0] && prediction.family == name[1] && prediction.metric == name[2];
    }));
    validation.families.back().metric = name[2];
  }
  for (const auto& kind : kinds) {
    validation.kinds.push_back(score_of(
        validation, kind, kAll, [&](const results::Prediction& prediction) { return prediction.kind == kind; }));
  }
  // Times, rates and percentiles of servers have no common error with times of other tables.
  const std::string serving(name_of(TableKind::serving));
  const bool has_others = kinds.size() > 1;
  validation.overall =
      score_of(validation, kinds.size() == 1 ? kinds.front() : "all", kAll,
               [&](const results::Prediction& prediction) { return !has_others || prediction.kind != serving; });
}

}  // namespace

std::vector<std::string> shipped_tables(const std::string& data_directory) {
  std::vector<std::string> files;
  for (const auto& table : kShipped) {
    if (table.by_default) { files.push_back(shipped_file(data_directory, table.name)); }
  }
  return files;
}

Result<results::Validation> validate_tables(const std::string& data_directory, const std::vector<std::string>& files,
                                            const std::vector<std::string>& families, std::size_t worst,
                                            BestPlan best_plan) {
  std::vector<std::string> paths;
  for (const auto& file : files) {
    ORRERY_TRY(path, table_file(data_directory, file));
    paths.push_back(std::move(path));
  }
  ORRERY_TRY(table, read_tables(paths.empty() ? shipped_tables(data_directory) : paths, families));
  ORRERY_TRY(parts, parts_for(data_directory, table.rows));
  parts.best_plan = std::move(best_plan);
  ORRERY_TRY(spreads, estimate::load_spreads(data_directory));
  parallel_for(table.rows.size(), 0,
               [&](std::size_t i) { predict(table.predictions[i], table.rows[i], parts, spreads); });
  add_terms(table.predictions, table.rows, parts, worst);
  predict_serving(table, data_directory, spreads);
  results::Validation validation;
  validation.predictions = std::move(table.predictions);
  for (auto& prediction : table.of_serving) { validation.predictions.push_back(std::move(prediction)); }
  add_scores(validation);
  validation.serving = serving_scores(validation.predictions);
  return validation;
}

}  // namespace orrery::validate
