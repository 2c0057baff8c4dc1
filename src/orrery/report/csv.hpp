// Predictions as csv, one row per measurement, in the order of the input.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "orrery/results/validation.hpp"

namespace orrery::report {

// One field by RFC 4180: quoted where it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

// `id,family,measured,predicted,ape,skipped_reason,p10_s,p90_s,spread,taken_as`: the range in which four of five
// measurements lie, the kind of job that it is of, and columns that do not go together with what they were taken as.
// Times in seconds with every digit, ape as a fraction, and nothing where there is nothing to say.
[[nodiscard]] std::string predictions_csv(std::span<const results::Prediction> predictions);

}  // namespace orrery::report
