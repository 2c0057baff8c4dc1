// The critical path of a run under ASTRA-sim's rules: the chain of events that ends with the last node. Private to the
// room.
#pragma once

#include "orrery/results/critical_path.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

// The job asks for it, and the machine has run it.
[[nodiscard]] results::CriticalPath event_path(const SimulationJob& job, const Machine& machine);

}  // namespace orrery::simulate
