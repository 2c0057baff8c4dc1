// Running execution graphs on a simulated machine.
//
//   orrery::simulate::JobFiles files;
//   files.workload = "traces/llama";       // traces/llama.0.et, …
//   files.system = "system.json"; …
//   auto simulation = orrery::api::simulate(files);
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::api {

// ASTRA-sim's inputs under ASTRA-sim's rules.
[[nodiscard]] Result<results::Simulation> simulate(const simulate::JobFiles& files);

}  // namespace orrery::api
