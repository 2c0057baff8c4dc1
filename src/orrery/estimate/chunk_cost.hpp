// Price of a chunk's tasks: segments over the compute stream and the overlapped stream.
#pragma once

#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/estimate/priced.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// A chunk's tasks for one micro-batch. Stalls: exposed waiting for gathered weights, sharded gradients or the second
// tier.
struct ChunkCost {
  Cost forward, backward, weight;  // weight: weight gradients that are a separate task
  Seconds forward_stall, backward_stall, weight_stall;
  // How much longer the task takes that completes the gradients of the last micro-batch, because of its
  // concurrent reductions, and the part of it that is interference.
  Seconds last_extra, last_slowed;
  Seconds reductions;  // once a step: network time
  Seconds last_side;   // when they have ended, after the start of that task, if they start during it

  [[nodiscard]] Seconds forward_time() const { return forward.time + forward_stall; }
  [[nodiscard]] Seconds backward_time() const { return backward.time + backward_stall; }
  [[nodiscard]] Seconds weight_time() const { return weight.time + weight_stall; }
  [[nodiscard]] Seconds whole_backward() const { return backward_time() + weight_time(); }
};

// Gathers and reductions during a chunk's forwards.
struct FirstGathers {
  bool later = false;    // in every forward
  bool updated = false;  // in the first one only: of updated weights. All of a stage are issued when the step starts
  Seconds time;          // of the first forward's network calls, unless `later`
};
[[nodiscard]] FirstGathers first_gathers(const parallel::ChunkProgram& chunk, const std::vector<Cost>& blocks);

// Tasks of every micro-batch. last_* are left out.
[[nodiscard]] ChunkCost price_chunk(const parallel::ChunkProgram& chunk, const std::vector<Cost>& blocks,
                                    Concurrency concurrency);

// Sets last_side, last_slowed and last_extra: once-a-step reductions of a chunk run during its last backward and slow
// it. Other stages wait for it. Needs `reductions`.
void price_last_backward(ChunkCost& cost, const parallel::ChunkProgram& chunk, const std::vector<Cost>& blocks,
                         Concurrency concurrency);

}  // namespace orrery::estimate
