// Results as JSON documents for scripts: field names and units are those of the contract (SI base units, the unit in
// the name), in a fixed order. A number that is not finite is null. Each document ends with a line break.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/hardware/entry.hpp"
#include "orrery/report/listing.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/results/plan.hpp"
#include "orrery/results/sample.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::report {

// orrery.estimate/1. `chosen`: what the estimator settled for fields left open. Terms and rank classes appear when the
// estimate holds any.
[[nodiscard]] std::string estimate_json(const results::Estimate& estimate, std::span<const std::string> chosen = {});

// orrery.plan/1. The best plans carry the fields of an estimate, without terms, classes and a schema of their own.
[[nodiscard]] std::string plan_json(const results::PlanSearch& search);

// orrery.sample/1. Points that no plan stands for have a verdict alone.
[[nodiscard]] std::string sample_json(const results::Sample& sample);

// orrery.validate/1. Errors are fractions; null where no row of a family could be scored.
[[nodiscard]] std::string validation_json(const results::Validation& validation);

// orrery.list/1. `kind` as in `orrery list KIND`. `unverified_figures` appears when there are any.
[[nodiscard]] std::string listing_json(std::string_view kind, std::span<const hardware::EntrySummary> entries,
                                       std::span<const UnverifiedFigure> figures = {});

}  // namespace orrery::report
