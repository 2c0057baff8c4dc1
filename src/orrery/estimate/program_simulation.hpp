// Plays a program item by item, the way program.hpp says it runs: the check on the closed form of step.cpp. The two
// share the program and the prices of kernels, collectives and transfers, nothing else. Slow, and meant to be obvious.
//
// One rank stands for each stage. A rank has three streams: compute, collectives inside blocks, and gathers and
// reductions beside blocks; work on a stream starts when the stream is free and what it waits for has ended.
// Collectives over groups that span stages start when the last stage has come to them.
#pragma once

#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

struct Played {
  Seconds time;                       // of the step, host overhead included
  std::vector<Seconds> stage_end;     // [stage]: its last backward has ended
  std::vector<Seconds> synchronised;  // [stage]: its gradients are synchronised
};

[[nodiscard]] Played play(const parallel::Program& program, const network::Fabric& fabric,
                          const hardware::Stack& stack);

}  // namespace orrery::estimate
