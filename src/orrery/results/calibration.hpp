// What a calibration found: the figures before and after, the rows that moved them, and what stays unexplained.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery::results {

enum class CalibrationKind : unsigned char { run, collective, kernel };

// One measurement. Times in seconds.
struct CalibrationRow {
  std::string id;
  CalibrationKind kind = CalibrationKind::run;
  double measured = 0;
  double before = 0, after = 0;  // predicted
  double left_out = 0;           // predicted by the fit without this row (linearised)
  bool explained = true;         // `after` is within the expected scatter of measurements, twice
};

// A row that a figure depends on, and by how much it changed the figure: a factor.
struct FigureMover {
  std::size_t row = 0;  // in Calibration::rows
  double factor = 1.0;
};

struct CalibratedFigure {
  std::string owner;    // "accelerator", "link", "stack"
  std::string of;       // its name
  std::string name;     // as in its file
  std::string meaning;  // in a few words
  bool is_time = false;
  bool is_factor = false;  // of several figures: `before` is 1
  double before = 0, after = 0;
  double uncertainty = 0;           // standard deviation of ln(after)
  bool at_bound = false;            // the fit would go further
  std::size_t rows = 0;             // that depend on it
  std::vector<FigureMover> movers;  // the rows that changed it most, largest first
};

// A row that was not used, and why.
struct UnusedRow {
  std::string id, reason;
};

struct Calibration {
  std::string cluster, stack;  // names; the stack's is empty without runs
  double scatter = 0;          // standard deviation of ln(predicted / measured) that measurements are expected to have
  std::vector<CalibratedFigure> figures;  // that rows determine
  std::vector<std::string> undetermined;  // figures that no row depends on: "stream_latency of h100-sxm"
  std::vector<CalibrationRow> rows;
  std::vector<UnusedRow> unused;
  std::string cluster_yaml, stack_yaml;  // files with the new figures; the stack's is empty without runs
};

}  // namespace orrery::results
