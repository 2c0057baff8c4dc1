// Why ranks of a physical machine did not finish. Private to the room.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/simulate/physical_machine.hpp"

namespace orrery::simulate {

// No event is left, and some rank has not finished.
[[nodiscard]] Failure physical_deadlock(const SimulationJob& job, const PhysicalMachine& machine);

}  // namespace orrery::simulate
