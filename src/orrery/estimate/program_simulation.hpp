// Simulates a program item by item, as program.hpp defines it: the independent check of the closed form in step.cpp.
// The two share only the program and the prices of kernels, collectives and transfers. Written to be obvious, not fast.
//
// One rank represents each stage. A rank has three streams: compute, collectives inside blocks, and the side stream
// (gathers and reductions that overlap with blocks). An item starts when its stream is free and its dependencies have
// ended. A collective over several stages starts when the last of them has reached it.
#pragma once

#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

struct SimulatedStep {
  Seconds time;                       // of the step, host overhead included
  std::vector<Seconds> stage_end;     // [stage]: end of its last backward
  std::vector<Seconds> synchronised;  // [stage]: when its gradients are synchronised
};

[[nodiscard]] SimulatedStep simulate(const parallel::Program& program, const network::Fabric& fabric,
                                     const hardware::Stack& stack);

}  // namespace orrery::estimate
