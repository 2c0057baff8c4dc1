// Results of MAD-Max's equations as text and as JSON (orrery.estimate/1 and orrery.plan/1 with "semantics":"mad-max"),
// and both streams of a device as a Chrome trace.
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/mad_max.hpp"

namespace orrery::report {

[[nodiscard]] std::string mad_max_text(const results::MadMaxEstimate& estimate, TextStyle style = {});
[[nodiscard]] std::string mad_max_json(const results::MadMaxEstimate& estimate);

// Strategies as the plan, and busy times, as objects on one line.
struct MadMaxParts {
  std::string plan, breakdown;
};
[[nodiscard]] MadMaxParts mad_max_parts(const results::MadMaxEstimate& estimate);

[[nodiscard]] std::string mad_max_plan_text(const results::MadMaxSearch& search, TextStyle style = {});
[[nodiscard]] std::string mad_max_plan_json(const results::MadMaxSearch& search);

// Requires the events of the estimate. Times of the trace are in microseconds; "args" has them in seconds with all
// digits.
[[nodiscard]] std::string mad_max_timeline(const results::MadMaxEstimate& estimate);

}  // namespace orrery::report
