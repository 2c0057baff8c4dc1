// Why ranks of a machine under physical rules did not finish. Private to the room.
#pragma once

#include "orrery/core/error.hpp"
#include "orrery/simulate/collective_match.hpp"
#include "orrery/simulate/physical_nodes.hpp"

namespace orrery::simulate {

// No event is left, and some rank has not finished.
[[nodiscard]] Failure physical_deadlock(const SimulationJob& job, const PhysicalNodes& nodes,
                                        const CollectiveMatch& match);

}  // namespace orrery::simulate
