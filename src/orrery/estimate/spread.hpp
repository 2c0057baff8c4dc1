// How far measured times lie from predicted ones, by kind of job: what an estimate's uncertainty is read from.
//
// A table of quantiles of measured / predicted over published rows that the calibration had not seen
// (tools/calibrate/spread.py writes it). It says how wrong predictions of a kind have been, not how a single job varies
// from step to step.
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
  std::string kind;             // as kind_of says, or "any"
  double p10 = 1.0, p90 = 1.0;  // of measured / predicted
  std::int64_t rows = 0;        // measurements
  std::int64_t groups = 0;      // configurations that they are of
};

struct Spreads {
  std::vector<Spread> kinds;  // empty: nothing is known
  std::string source;
};

// <data>/uncertainty.yaml. A directory without one knows nothing.
[[nodiscard]] Result<Spreads> load_spreads(const std::string& data_directory);

// Kinds of jobs that err alike, from the narrowest to the widest, "any" last: adapters, mixtures of experts, dense
// models within one scale-up domain and beyond, batches of requests; each under its software stack first ("experts
// megatron-core"); and any of them on accelerators on which nothing was measured.
[[nodiscard]] std::vector<std::string> kinds_of(const parallel::Job& job, const workload::Model& model,
                                                const hardware::Cluster& cluster, const hardware::Stack& stack);

// The range of a time that the spread of the narrowest kind in the table gives; nothing when there is none.
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
