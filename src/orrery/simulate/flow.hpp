// Runs a job whose collectives and messages are flows on the ports of a cluster: docs/models/flow.md.
#pragma once

#include <cstdint>
#include <optional>

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

// `shared`: false gives every collective and message its ports for itself, as the closed form does; `apart` does so for
// one of job.kinds. Fails where ranks cannot finish. The result has all real ranks; its tables and spans have the
// simulated ones.
[[nodiscard]] Result<results::Simulation> simulate_flows(const FlowJob& job, bool shared = true,
                                                         std::optional<std::uint32_t> apart = std::nullopt);

}  // namespace orrery::simulate
