// Why ranks of a physical machine did not come to their end. Private to the room.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/simulate/physical_machine.hpp"

namespace orrery::simulate {

// Nothing is left to happen, and some rank has not finished.
[[nodiscard]] Failure physically_stalled(const Job& job, const PhysicalMachine& machine);

}  // namespace orrery::simulate
