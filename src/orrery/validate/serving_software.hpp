// What a row of serving measurements says about its software: its checkpoint and its age.
#pragma once

#include "orrery/validate/serving_rows.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::validate {

// Layers that the checkpoint of a row quantises.
[[nodiscard]] workload::Quantized quantized_of(const ServingRow& row);

// Months from the day of a row to June 2026; 0 after it, and where the day is not stated.
[[nodiscard]] double software_age_of(const ServingRow& row);

}  // namespace orrery::validate
