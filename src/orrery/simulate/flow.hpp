// Runs a job whose collectives and messages are flows on the ports of a cluster: docs/models/flow.md.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

// `shared`: false gives every collective and message its ports for itself, as the closed form does. Fails where ranks
// cannot finish. The result has all real ranks; its tables and spans have the simulated ones.
[[nodiscard]] Result<results::Simulation> simulate_flows(const FlowJob& job, bool shared = true);

}  // namespace orrery::simulate
