#include "orrery/report/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::json_object;
using config::Node;
using results::CalibratedFigure;
using results::Calibration;
using results::CalibrationKind;
using results::CalibrationRow;

constexpr std::array kAllKinds = {CalibrationKind::run, CalibrationKind::collective, CalibrationKind::kernel};
constexpr std::size_t kMostUnexplained = 10;
constexpr std::size_t kMostUnused = 10;
constexpr std::size_t kIdWidth = 48;

std::string_view name_of(CalibrationKind kind) {
  switch (kind) {
    case CalibrationKind::run: return "run";
    case CalibrationKind::collective: return "collective";
    case CalibrationKind::kernel: return "kernel";
  }
  return "";
}

double error(double predicted, double measured) { return predicted / measured - 1.0; }

struct Errors {
  std::size_t rows = 0;
  double mean = 0, median = 0;
};

template <class Of>
Errors errors_of(const Calibration& calibration, CalibrationKind kind, const Of& predicted) {
  std::vector<double> sizes;
  for (const auto& row : calibration.rows) {
    if (row.kind == kind) { sizes.push_back(std::abs(error(predicted(row), row.measured))); }
  }
  if (sizes.empty()) { return {}; }
  std::sort(sizes.begin(), sizes.end());
  Errors errors{sizes.size(), 0.0, 0.0};
  for (const double size : sizes) { errors.mean += size / static_cast<double>(sizes.size()); }
  const std::size_t half = sizes.size() / 2;
  errors.median = sizes.size() % 2 == 1 ? sizes[half] : 0.5 * (sizes[half - 1] + sizes[half]);
  return errors;
}

double before(const CalibrationRow& row) { return row.before; }
double after(const CalibrationRow& row) { return row.after; }
double left_out(const CalibrationRow& row) { return row.left_out; }

std::string value_text(const CalibratedFigure& figure, double value) {
  if (figure.is_factor) { return fmt::format("x {:.2f}", value); }
  return figure.is_time ? config::format_seconds(Seconds(value)) : fmt::format("{:.3f}", value);
}

std::string signed_percent(double fraction) { return fmt::format("{:+.1f} %", 100.0 * fraction); }

std::string error_table(const Calibration& calibration) {
  Table table;
  table.column("measured", Table::Align::left).column("rows");
  table.column("mean error before").column("after").column("left out").column("median before").column("after");
  for (const auto kind : kAllKinds) {
    const Errors was = errors_of(calibration, kind, before), is = errors_of(calibration, kind, after);
    if (was.rows == 0) { continue; }
    table.row({fmt::format("{}s", name_of(kind)), std::to_string(was.rows), percent(was.mean), percent(is.mean),
               percent(errors_of(calibration, kind, left_out).mean), percent(was.median), percent(is.median)});
  }
  return table.text();
}

std::string figure_table(const Calibration& calibration) {
  Table table;
  table.column("figure", Table::Align::left).column("of", Table::Align::left);
  table.column("before").column("after").column("+-").column("rows").column("meaning", Table::Align::left);
  for (const auto& figure : calibration.figures) {
    table.row({figure.name, figure.of, value_text(figure, figure.before),
               value_text(figure, figure.after) + (figure.at_bound ? " (bound)" : ""),
               fmt::format("{:.0f} %", 100.0 * figure.uncertainty), std::to_string(figure.rows), figure.meaning});
  }
  return table.text();
}

std::string mover_lines(const Calibration& calibration) {
  std::string text;
  for (const auto& figure : calibration.figures) {
    std::vector<std::string> movers;
    for (const auto& mover : figure.movers) {
      movers.push_back(
          fmt::format("{} ({})", cut_to(calibration.rows[mover.row].id, kIdWidth), signed_percent(mover.factor - 1.0)));
    }
    if (movers.empty()) { continue; }
    text += wrapped_list(fmt::format("  {} of {}: ", figure.name, figure.of), movers);
  }
  return text.empty() ? text : "\nrows that moved a figure most, and by how much each\n" + text;
}

std::string unexplained_table(const Calibration& calibration) {
  std::vector<const CalibrationRow*> rows;
  for (const auto& row : calibration.rows) {
    if (!row.explained) { rows.push_back(&row); }
  }
  if (rows.empty()) {
    return fmt::format("\nall rows are explained to {:.0f} % (twice the scatter of measurements)\n",
                       200.0 * calibration.scatter);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return std::abs(std::log(a->after / a->measured)) > std::abs(std::log(b->after / b->measured));
  });
  Table table;
  table.column("unexplained", Table::Align::left).column("measured").column("before").column("after").column("error");
  for (std::size_t i = 0; i < std::min(rows.size(), kMostUnexplained); ++i) {
    const CalibrationRow& row = *rows[i];
    table.row({"  " + cut_to(row.id, kIdWidth), config::format_seconds(Seconds(row.measured)),
               config::format_seconds(Seconds(row.before)), config::format_seconds(Seconds(row.after)),
               signed_percent(error(row.after, row.measured))});
  }
  std::string text = fmt::format("\n{} of {} rows are off by more than {:.0f} %: these figures do not explain them\n",
                                 rows.size(), calibration.rows.size(), 200.0 * calibration.scatter);
  return text + table.text();
}

std::string unused_lines(const Calibration& calibration) {
  if (calibration.unused.empty()) { return {}; }
  std::string text = fmt::format("\n{} not used\n", counted(static_cast<long long>(calibration.unused.size()), "row"));
  for (std::size_t i = 0; i < std::min(calibration.unused.size(), kMostUnused); ++i) {
    text += wrapped(fmt::format("  {}: ", cut_to(calibration.unused[i].id, kIdWidth)), calibration.unused[i].reason);
  }
  return text;
}

Node json_of(const CalibrationRow& row) {
  return json_object({{"id", row.id},
                      {"kind", name_of(row.kind)},
                      {"measured_s", row.measured},
                      {"before_s", row.before},
                      {"after_s", row.after},
                      {"left_out_s", row.left_out},
                      {"explained", row.explained}});
}

Node json_of(const CalibratedFigure& figure, const Calibration& calibration) {
  const auto mover = [&](const results::FigureMover& one) {
    return json_object({{"id", calibration.rows[one.row].id}, {"factor", one.factor}});
  };
  return json_object({{"owner", figure.owner},
                      {"of", figure.of},
                      {"name", figure.name},
                      {"meaning", figure.meaning},
                      {"is_factor", figure.is_factor},
                      {"before", figure.before},
                      {"after", figure.after},
                      {"relative_deviation", figure.uncertainty},
                      {"at_bound", figure.at_bound},
                      {"rows", figure.rows},
                      {"moved_by", config::json_list(figure.movers, mover)}});
}

Node errors_json(const Calibration& calibration, CalibrationKind kind) {
  const Errors was = errors_of(calibration, kind, before), is = errors_of(calibration, kind, after);
  const Errors out = errors_of(calibration, kind, left_out);
  return json_object({{"kind", name_of(kind)},
                      {"rows", was.rows},
                      {"mape_before", was.mean},
                      {"mape_after", is.mean},
                      {"mape_left_out", out.mean},
                      {"median_ape_before", was.median},
                      {"median_ape_after", is.median},
                      {"median_ape_left_out", out.median}});
}

}  // namespace

std::string calibration_text(const Calibration& calibration, TextStyle style) {
  std::string of = printable(calibration.cluster);
  if (!calibration.stack.empty()) { of += fmt::format(" with stack {}", printable(calibration.stack)); }
  std::string text = bold(fmt::format("calibration of {}", of), style) + "\n\n" + error_table(calibration);
  text += "\n" + figure_table(calibration) + mover_lines(calibration) + unexplained_table(calibration);
  if (!calibration.undetermined.empty()) {
    text += "\n" + wrapped_list("no row depends on: ", calibration.undetermined);
  }
  return text + unused_lines(calibration);
}

std::string calibration_json(const Calibration& calibration) {
  Node kinds = config::sequence_node({});
  for (const auto kind : kAllKinds) {
    if (errors_of(calibration, kind, before).rows > 0) { config::add_item(kinds, errors_json(calibration, kind)); }
  }
  const auto unused = [](const results::UnusedRow& row) {
    return json_object({{"id", row.id}, {"reason", row.reason}});
  };
  const auto figure = [&](const CalibratedFigure& one) { return json_of(one, calibration); };
  return config::json_document(json_object(
      {{"schema", "orrery.calibrate/1"},
       {"cluster", calibration.cluster},
       {"stack", config::text_or_null(calibration.stack)},
       {"scatter", calibration.scatter},
       {"kinds", kinds},
       {"figures", config::json_list(calibration.figures, figure)},
       {"undetermined", calibration.undetermined},
       {"rows", config::json_list(calibration.rows, [](const CalibrationRow& row) { return json_of(row); })},
       {"unused", config::json_list(calibration.unused, unused)}}));
}

}  // namespace orrery::report
