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
  std::string unscored_reason;  // why there is a value and it is not the time of what was predicted; or empty
};

// Of training and dlrm_moe: `step_time_s`. Of inference, the time of a whole batch from prompt to last token, out of
// `value`, `unit` and `metric`:
//   a latency                            value in seconds; one of the first token where osl is 1
//   a throughput of generated tokens     batch osl / value; per accelerator, batch osl / (value gpus)
// Of kernels and collectives: `time_us`.
// A blank ("n/a" is one), zero or negative value is no measurement. Errors: text that is no number.
[[nodiscard]] Result<Measurement> measurement_of(Kind kind, const Csv& csv, const CsvRow& row);

}  // namespace orrery::validate
