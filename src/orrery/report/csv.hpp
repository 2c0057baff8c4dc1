// Predictions as csv, one row per measurement, in the order of the input.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "orrery/results/validation.hpp"

namespace orrery::report {

// One field by RFC 4180: quoted where it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

// `id,family,measured,predicted,ape,skipped_reason,p10_s,p90_s,spread,taken_as`: p10_s and p90_s are the 80 % interval,
// `spread` the kind of job of that interval, `taken_as` the values used for columns that contradict each other. Times
// are in seconds with all digits, ape is a fraction; absent values are empty.
[[nodiscard]] std::string predictions_csv(std::span<const results::Prediction> predictions);

}  // namespace orrery::report
