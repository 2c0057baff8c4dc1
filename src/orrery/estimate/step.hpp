// One training step of a priced program: the pipeline solved, gradient synchronisation and optimizer behind it.
#pragma once

#include <vector>

#include "orrery/estimate/priced.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// A chunk's forward and backward of one micro-batch, data-parallel stalls included.
struct ChunkCost {
  Cost forward, backward;  // work; `exposed` holds tensor-parallel waits only
  Seconds forward_stall, backward_stall;  // waiting for gathered weights or sharded gradients
};

struct Step {
  Seconds time;
  std::int64_t critical_stage = 0;     // its gradients are ready last
  Seconds start_delay;                 // first forward waiting for updated weights
  Seconds pipeline_end;                // of the critical stage
  Seconds reduce_tail;                 // gradient synchronisation after that
  Seconds finish;                      // optimizer and what follows, of the slowest stage
  std::vector<Cost> blocks;            // price of every block of the program
  std::vector<ChunkCost> chunks;       // [stage class * vpp + chunk]
  std::vector<Cost> finishes;          // [stage class]: finish segment
};

enum class Transfers : std::uint8_t { priced, free };

// Solves the step. `transfers` = free asks what the step would take if pipeline transfers cost nothing.
[[nodiscard]] Step solve_step(const parallel::Program& program, const network::Fabric& fabric,
                              const hardware::Stack& stack, parallel::PipelineSolver& solver,
                              Transfers transfers = Transfers::priced);

}  // namespace orrery::estimate
