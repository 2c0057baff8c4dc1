// A calibration as text and as JSON.
#pragma once

#include <string>

#include "orrery/report/style.hpp"
#include "orrery/results/calibration.hpp"

namespace orrery::report {

[[nodiscard]] std::string calibration_text(const results::Calibration& calibration, TextStyle style = {});

// orrery.calibrate/1. Times in seconds; errors are fractions.
[[nodiscard]] std::string calibration_json(const results::Calibration& calibration);

}  // namespace orrery::report
