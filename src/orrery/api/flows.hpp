// Lists of flows on networks of links (`simulate --flows`).
#pragma once

#include <string>

#include "orrery/core/error.hpp"
#include "orrery/results/flow_times.hpp"

namespace orrery::api {

// The finish times of the flows of a file (docs/format/flows.md).
[[nodiscard]] Result<results::FlowTimes> simulate_flow_file(const std::string& file);

}  // namespace orrery::api
