// Results as JSON documents for scripts: SI base units, the unit in the name of the field, a fixed order of fields. A
// number that is not finite is null. Each document ends with a line break.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/entry.hpp"
#include "orrery/report/listing.hpp"
#include "orrery/results/comparison.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/results/plan.hpp"
#include "orrery/results/sample.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::report {

// orrery.estimate/1. `chosen`: the values that the estimator chose for fields that were not given. Terms and rank
// classes appear if the estimate has any. `against`: the field of the same name, with the other plan's estimate.
[[nodiscard]] std::string estimate_json(const results::Estimate& estimate, std::span<const std::string> chosen = {},
                                        const std::optional<results::Comparison>& against = std::nullopt);

// Parts of orrery.estimate/1 as objects on one line: "plan", "breakdown_s", "comm_s", "memory_B".
struct EstimateParts {
  std::string plan, breakdown, comm, memory, passes;
};
[[nodiscard]] EstimateParts estimate_parts(const results::Estimate& estimate);

// orrery.plan/1. The best plans have the fields of an estimate, without terms, classes and schema.
[[nodiscard]] std::string plan_json(const results::PlanSearch& search);

// orrery.sample/1. Points without a valid plan have only a verdict.
[[nodiscard]] std::string sample_json(const results::Sample& sample);

// orrery.validate/1. Errors are fractions; null if no row of a family is scored.
[[nodiscard]] std::string validation_json(const results::Validation& validation);

// orrery.list/1. `kind` as in `orrery list KIND`. `unverified_figures` appears if there are any.
[[nodiscard]] std::string listing_json(std::string_view kind, std::span<const hardware::EntrySummary> entries,
                                       std::span<const UnverifiedFigure> figures = {});

// orrery.errors/1: the errors of a command that ran with --json. `file`, `line` and `column` are null where they do not
// apply.
[[nodiscard]] std::string errors_json(const Failure& failure);

}  // namespace orrery::report
