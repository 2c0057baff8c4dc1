// The times of flows as text and as a JSON document (orrery.simulate/1).
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/flow_times.hpp"

namespace orrery::report {

[[nodiscard]] std::string flow_times_text(const results::FlowTimes& times, TextStyle style = {});
[[nodiscard]] std::string flow_times_json(const results::FlowTimes& times);

}  // namespace orrery::report
