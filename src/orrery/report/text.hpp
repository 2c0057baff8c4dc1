// Results as text for people at a terminal: aligned, at most 100 columns where names allow, plain ASCII apart from the
// names themselves. Colours are escape sequences and come only when asked for.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "orrery/hardware/entry.hpp"
#include "orrery/report/listing.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/results/plan.hpp"
#include "orrery/results/sample.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::report {

struct TextStyle {
  bool colour = false;
};

// `chosen`: what the estimator settled for fields left open. Terms and rank classes follow when the estimate holds any.
[[nodiscard]] std::string estimate_text(const results::Estimate& estimate, std::span<const std::string> chosen,
                                        TextStyle style = {});

// Ranked plans, what was searched, and why the winner wins.
[[nodiscard]] std::string plan_text(const results::PlanSearch& search, TextStyle style = {});

// Points of a space, what each comes to, and the command that says so, on a line of its own.
[[nodiscard]] std::string sample_text(const results::Sample& sample);

// Families, all rows together, and the rows with the largest errors.
[[nodiscard]] std::string validation_text(const results::Validation& validation, TextStyle style = {});

// `kind` as in `orrery list KIND`.
[[nodiscard]] std::string listing_text(std::string_view kind, std::span<const hardware::EntrySummary> entries);

// The entries that have unverified figures, with each of those figures and what is said instead of a source.
[[nodiscard]] std::string unverified_text(std::string_view kind, std::span<const hardware::EntrySummary> entries,
                                          std::span<const UnverifiedFigure> figures, TextStyle style = {});

}  // namespace orrery::report
