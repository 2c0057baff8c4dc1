// Device memory of the ranks of graphs whose nodes list their tensors (`inputs`, `outputs`), over the time of a run.
//
// A tensor is in memory from the start of the node that writes it (from the start of the run, if none does) to the end
// of the last node that reads it (to the end of the run, if none does), as in ASTRA-sim's track-local-mem. Private to
// the room.
#pragma once

#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// By simulated rank, whose number spans have; without a capacity. Linear in spans and uses of tensors, and a sort.
[[nodiscard]] results::MemoryOverTime tensor_memory(const SimulationJob& job, const results::Simulation& simulation);

}  // namespace orrery::simulate
