// Results as text for a terminal: aligned, at most 100 columns if names allow, plain ASCII except for names. Colours
// (escape sequences) only if requested.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "orrery/hardware/entry.hpp"
#include "orrery/report/listing.hpp"
#include "orrery/results/comparison.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/results/plan.hpp"
#include "orrery/results/sample.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::report {

struct TextStyle {
  bool colour = false;
};

// `chosen`: the values that the estimator chose for fields that were not given. Terms and rank classes follow if the
// estimate has any.
// "expansion serial: 120 GiB in the second tier (55 GiB of optimizer, 65 GiB of weights)"; needs Estimate::expansion.
[[nodiscard]] std::string expansion_text(const results::Estimate& estimate);

[[nodiscard]] std::string estimate_text(const results::Estimate& estimate, std::span<const std::string> chosen,
                                        TextStyle style = {});

// How another plan differs, a sentence a line.
[[nodiscard]] std::string comparison_text(const results::Comparison& comparison);

// Ranked plans, the search space, and why the best plan wins.
[[nodiscard]] std::string plan_text(const results::PlanSearch& search, TextStyle style = {});

// Sampled points of a space with their results, and for each the command that repeats it, on one line.
[[nodiscard]] std::string sample_text(const results::Sample& sample);

// Errors of each family and of all rows, and the rows with the largest errors.
[[nodiscard]] std::string validation_text(const results::Validation& validation, TextStyle style = {});

// `kind` as in `orrery list KIND`.
[[nodiscard]] std::string listing_text(std::string_view kind, std::span<const hardware::EntrySummary> entries);

// The entries with unverified figures: each figure, and the reason given instead of a source.
[[nodiscard]] std::string unverified_text(std::string_view kind, std::span<const hardware::EntrySummary> entries,
                                          std::span<const UnverifiedFigure> figures, TextStyle style = {});

}  // namespace orrery::report
