// The measured side of a row: the time that its prediction is compared with. No prediction sees it.
#pragma once

#include <optional>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/validate/csv.hpp"
#include "orrery/validate/kind.hpp"

namespace orrery::validate {

struct Measurement {
  std::optional<double> seconds;
  std::string unscored_reason;  // why the value cannot be compared with the prediction; empty: it can
};

// Training and dlrm_moe: `step_time_s`. Inference: the time of a whole batch from prompt to last token, from `value`,
// `unit` and `metric`:
//   a latency                            value in seconds; first-token latency where osl is 1
//   a throughput of generated tokens     batch osl / value; per accelerator, batch osl / (value gpus)
// Kernels and collectives: `time_us`. Commands: `measured_s`.
// A column `unscored` has the reason why a row has no score. A blank ("n/a" is one), zero or negative value is no
// measurement. Errors: text that is not a number.
[[nodiscard]] Result<Measurement> measurement_of(TableKind kind, const Csv& csv, const CsvRow& row);
// Of a figure of campaigns and wan: the number in `column`.
[[nodiscard]] Result<Measurement> figure_measured(const Csv& csv, const CsvRow& row, const std::string& column);

}  // namespace orrery::validate
