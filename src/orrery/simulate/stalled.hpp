// Why ranks did not come to their end. Private to the room.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

// Nothing is left to happen, and some rank has not finished.
[[nodiscard]] Failure stalled(const Job& job, const Machine& machine);

}  // namespace orrery::simulate
