// Energy of a simulated job (docs/models/flow.md#energy). Private to the room.
#pragma once

#include "orrery/results/simulation.hpp"
#include "orrery/simulate/flow_machine.hpp"

namespace orrery::simulate {

// `simulation`: with the times of all ranks.
[[nodiscard]] results::SimulatedEnergy energy_of(const FlowJob& job, const FlowMachine& machine,
                                                 const results::Simulation& simulation);

}  // namespace orrery::simulate
