// One training step of a priced program: the pipeline solved, gradient synchronisation and optimizer behind it.
#pragma once

#include <span>
#include <vector>

#include "orrery/estimate/priced.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// A chunk's tasks of one micro-batch. Stalls: waiting for gathered weights, sharded gradients or the second tier,
// beside the work.
struct ChunkCost {
  Cost forward, backward, weight;  // weight: gradients that are a task of their own
  Seconds forward_stall, backward_stall, weight_stall;
  // What of waiting for experts runs beside another micro-batch, in the mean over all of them: the first forward and
  // the last backward, which have none beside them, take so much longer than what is above.
  Seconds forward_hidden, backward_hidden, weight_hidden;

  [[nodiscard]] Seconds forward_time() const { return forward.time + forward_stall; }
  [[nodiscard]] Seconds backward_time() const { return backward.time + backward_stall; }
  [[nodiscard]] Seconds weight_time() const { return weight.time + weight_stall; }
  [[nodiscard]] Seconds whole_backward() const { return backward_time() + weight_time(); }
};

// DualPipe: a chunk's forward beside the whole backward of the other chunk of its rank. Traffic between experts that
// one of the two waits for runs under the other's work:
//   time = max( forward + backward - their waiting for experts, that traffic )
struct PairCost {
  Seconds time;
  Seconds hidden;  // waiting that the pair saves against the two apart; negative when the traffic is longer than both
};
[[nodiscard]] PairCost pair_cost(const ChunkCost& forward, const ChunkCost& backward);

struct Step {
  Seconds time;
  Seconds ready;  // when every gradient is synchronised
  // The stage that the step is explained by: unless asked to explain, the one whose gradients are ready last; else the
  // one that is at work longest, and of several the one that is ready last.
  std::int64_t critical_stage = 0;
  Seconds pipeline_end;           // of the critical stage
  Seconds reduce_tail;            // gradient synchronisation after that
  Seconds finish;                 // optimizer and what follows, of the slowest stage
  Seconds without_transfers;      // pipeline_end if transfers were free; only when asked to explain
  Seconds without_first_gathers;  // ... if no forward waited for updated weights
  std::vector<Cost> blocks;       // price of every block of the program
  std::vector<ChunkCost> chunks;  // price of every chunk program
  std::vector<Cost> finishes;     // [stage class]: finish segment
};

enum class Explained : std::uint8_t { no, yes };

// Solves the step.
//
//   time = max over stages of (pipeline end, reductions that outlast it, finish_reduce)     every gradient synchronised
//        + max over stages of finish, up to where everybody meets and from there on + host overhead
//
// The pipeline's times are those of a micro-batch without data-parallel reductions, which block nobody before the
// pipeline ends; weights gathered under the first forwards set earliest ends for them. Exact but for rounding to ticks:
// program_simulation_test.cpp plays programs item by item and gets the same time.
//
// Storage is kept from one call to the next. The step lives until then.
class StepSolver {
 public:
  StepSolver(const network::Fabric& fabric, const hardware::Stack& stack)
      : fabric_(fabric), stack_(stack), prices_(fabric) {}

  // `known`: prices of the program's first blocks, as price_block gives them.
  const Step& solve(const parallel::Program& program, std::span<const Cost> known = {},
                    Explained explained = Explained::no);

 private:
  const network::Fabric& fabric_;
  const hardware::Stack& stack_;
  network::PriceCache prices_;
  Step step_;
  parallel::PipelineSolver pipeline_;
  // Of the pipeline, as PipelineTimes has them.
  std::vector<parallel::Ticks> forward_, backward_, weight_, pair_, transfer_, first_end_;
  std::vector<Seconds> first_ends_, transfers_;

  friend class StepSolution;
};

}  // namespace orrery::estimate
