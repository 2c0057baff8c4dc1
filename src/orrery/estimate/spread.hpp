// Uncertainty of predicted times, by kind of job.
//
// A table of quantiles of measured / predicted times over published rows that the calibration did not use (written by
// tools/calibrate/spread.py). It describes the error of predictions of a kind, not the variation of one job from step
// to step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::estimate {

struct Spread {
  std::string kind;             // a value of kinds_of, or "any"
  double p10 = 1.0, p90 = 1.0;  // of measured / predicted
  std::int64_t rows = 0;        // measurements
  std::int64_t groups = 0;      // number of different configurations among them
};

struct Spreads {
  std::vector<Spread> kinds;  // may be empty
  std::string source;
};

// Reads <data>/uncertainty.yaml; empty if the file does not exist.
[[nodiscard]] Result<Spreads> load_spreads(const std::string& data_directory);

// The kinds that a job belongs to, from the narrowest to the widest ("any"). A kind is LoRA fine-tuning, mixture of
// experts, dense within or beyond one scale-up domain, or inference, first with the software stack, then without it. On
// an accelerator without measurements the first kind is "unmeasured-accelerator".
[[nodiscard]] std::vector<std::string> kinds_of(const parallel::Job& job, const workload::Model& model,
                                                const hardware::Cluster& cluster, const hardware::Stack& stack);

// The interval of a time, from the narrowest kind that the table has; nothing if it has none.
[[nodiscard]] std::optional<results::Uncertainty> uncertainty_of(const Spreads& spreads,
                                                                 const std::vector<std::string>& kinds, Seconds time);

}  // namespace orrery::estimate

template <>
struct orrery::config::Described<orrery::estimate::Spread> {
  static const Record<orrery::estimate::Spread>& record();
};
template <>
struct orrery::config::Described<orrery::estimate::Spreads> {
  static const Record<orrery::estimate::Spreads>& record();
};
