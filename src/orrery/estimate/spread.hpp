// Uncertainty of predicted times, by kind of job.
//
// A table of intervals of measured / predicted times (written by tools/calibrate/spread.py). An interval holds for a
// source that no figure was fitted to: it has the scatter of rows inside a source and the spread between sources
// (software releases, machines, clocks), and is as wide as it has to be so that it contains 80 % of the rows of a
// source that is left out. It describes the error of predictions of a kind, not the variation of one job from step to
// step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/group.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::estimate {

struct Spread {
  std::string kind;             // a value of kinds_of, or "any"
  double p10 = 1.0, p90 = 1.0;  // of measured / predicted
  std::int64_t rows = 0;        // measurements
  std::int64_t sources = 0;     // that they come from
  double scatter = 0.0;         // standard deviation of log(measured / predicted) inside a source
  double between = 0.0;         // standard deviation of the sources' medians of it
  double coverage = 0.0;        // part of the rows of a source that is left out which lie inside, mean over sources
};

struct Spreads {
  std::vector<Spread> kinds;  // may be empty
  std::string source;
};

// Reads <data>/uncertainty.yaml; empty if the file does not exist.
[[nodiscard]] Result<Spreads> load_spreads(const std::string& data_directory);

// The kinds that a job belongs to, from the narrowest to the widest ("any"): inference, or one of LoRA fine-tuning,
// mixtures of experts, recommenders and dense models, which all are training; each first with the weakest basis of the
// cluster's figures ("training measured"), then without it.
[[nodiscard]] std::vector<std::string> kinds_of(const parallel::Job& job, const workload::Model& model,
                                                const hardware::Cluster& cluster);
// The same of what is no job: "kernels", "parts"; and of collectives, by whether they are inside one scale-up domain,
// with the weakest basis of the group's links.
[[nodiscard]] std::vector<std::string> kinds_of(std::string_view kind, hardware::Basis basis);
[[nodiscard]] std::vector<std::string> kinds_of_collective(const network::Group& group,
                                                           const hardware::Cluster& cluster);

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
