// Why ranks did not finish. Private to the room.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

// No event is left, and some rank has not finished.
[[nodiscard]] Failure deadlock(const SimulationJob& job, const Machine& machine);

}  // namespace orrery::simulate
