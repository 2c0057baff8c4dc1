// Fits the figures of a machine and of a software stack to measurements of them.
//
// A measurement has a prediction for any values of the figures; calibrate::fit finds the values. Only figures that at
// least one measurement depends on are fitted. Scatter inside a source of measurements is 2 to 8 % (repeated runs, see
// docs/accuracy.md); kScatter is what a right model is expected to miss them by.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "orrery/calibrate/figures.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"
#include "orrery/results/calibration.hpp"

namespace orrery::calibrate {

inline constexpr double kScatter = 0.05;

// A measured time. `target` is the measured machine at its size, with the same accelerator, links and stack as the
// figures; `time` predicts it for any figures of `target`.
struct Measurement {
  std::string id;
  results::CalibrationKind kind = results::CalibrationKind::run;
  double seconds = 0;
  Target target;
  std::function<Seconds(const Target&)> time;
};

// Called with the number of predictions so far, and of those that the fit takes at most.
using Progress = std::function<void(std::int64_t done, std::int64_t most)>;

// Figures, rows and undetermined figures of the result are set; `fitted` is `target` with the new figures. Errors: a
// measurement whose prediction is not a positive number.
struct Fitted {
  results::Calibration result;
  Target target;
};
[[nodiscard]] Result<Fitted> fit_figures(const Target& target, const std::vector<Figure>& figures,
                                         const std::vector<Measurement>& measurements, const Progress& progress);

}  // namespace orrery::calibrate
