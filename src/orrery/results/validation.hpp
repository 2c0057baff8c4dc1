// The result of a comparison with measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::results {

// A part of a predicted time.
struct Share {
  std::string name;
  double seconds = 0;
};

// One row of a table of measurements. ape = |predicted - measured| / measured.
struct Prediction {
  std::string id, family;
  std::optional<double> measured_s;   // absent: the row has no measurement
  std::optional<double> predicted_s;  // absent: the row was skipped
  std::string skipped_reason;
  std::string kind = {};             // "training", "dlrm_moe", "inference"
  std::string taken_as = {};         // columns that contradict each other, and the values used; empty: none
  std::string unscored_reason = {};  // why the measurement is not comparable with the prediction; empty: it is
  std::optional<double> p10_s = {}, p90_s = {};  // 80 % interval of the prediction
  std::string spread = {};                       // the kind of job of that interval; empty: none
  std::vector<Share> terms = {};                 // of the rows with the largest errors, if requested
  std::string metric = {};                       // what is compared, where it is not a time in seconds: "gpu_hours"
  std::string group = {};  // of a serving row: configuration and load; empty: not in serving scores
  bool feasible = true;    // by the memory model; the time is predicted in any case

  [[nodiscard]] std::optional<double> signed_error() const {
    const bool scored = measured_s && *measured_s > 0 && unscored_reason.empty();
    if (!scored || !predicted_s) { return std::nullopt; }
    return (*predicted_s - *measured_s) / *measured_s;
  }
};

// Errors are fractions. bias = mean of signed errors.
struct FamilyScore {
  std::string kind, family;
  std::string metric = {};  // of tables with several measured columns
  std::int64_t rows = 0, predicted = 0, skipped = 0, scored = 0, infeasible = 0;
  std::int64_t ranged = 0, covered = 0;  // scored rows with an interval; those whose measurement is in it
  double width = 0;                      // mean width of the intervals / prediction
  double mape = 0, median_ape = 0, p90_ape = 0, max_ape = 0, bias = 0;
};

// Of serving tables: a figure of every row, as its median (p50) where that is measured, else its mean.
struct ServingScore {
  std::string figure;  // "TTFT", "TPOT", "output throughput"
  std::int64_t rows = 0, groups = 0;
  double median_ape = 0;   // all rows alike
  double grouped_log = 0;  // weighted median of |ln(predicted / measured)|: every configuration with a load counts once
};

struct Validation {
  std::vector<FamilyScore> families;
  std::vector<FamilyScore> kinds;  // each kind of table together
  FamilyScore overall;
  std::vector<ServingScore> serving;    // empty without a serving table
  std::vector<Prediction> predictions;  // in the order of the input
};

}  // namespace orrery::results
