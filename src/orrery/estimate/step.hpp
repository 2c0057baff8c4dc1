// One training step of a priced program: the solved pipeline, then gradient synchronisation and the optimizer.
#pragma once

#include <span>
#include <vector>

#include "orrery/estimate/chunk_cost.hpp"
#include "orrery/estimate/port_meetings.hpp"
#include "orrery/estimate/priced.hpp"
#include "orrery/estimate/work_prices.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// The forward of a chunk together with the whole backward of a chunk of the rank (PipelineTask::Kind::pair).
struct PairCost {
  Seconds time;
  Seconds hidden;  // time saved against running the two in sequence; negative if that would be faster
};

struct Step {
  Seconds time;
  Seconds ready;  // when every gradient is synchronised
  // The stage whose times the breakdown shows. With Explained::no, the stage whose gradients are ready last. With
  // Explained::yes, the stage with the most work; among equals, the one that is ready last.
  std::int64_t critical_stage = 0;
  Seconds pipeline_end;           // of the critical stage
  Seconds reduce_tail;            // gradient synchronisation after pipeline_end
  Seconds last_extra;             // ChunkCost::last_extra of all chunks of the critical stage
  Seconds input_gather;           // price_input_gather(): at the beginning of tasks
  Seconds finish;                 // optimizer and later work of the slowest stage
  Seconds without_transfers;      // pipeline_end if transfers were free; set with Explained::yes
  Seconds without_first_gathers;  // ... if no forward waited for updated weights
  std::vector<Cost> blocks;       // price of every block of the program
  std::vector<ChunkCost> chunks;  // price of every chunk program
  std::vector<PairCost> pairs;    // [parallel::pair_index()]; 0 where no stage runs the pair; empty without pairs
  std::vector<Cost> finishes;     // [stage class]: finish segment
};

enum class Explained : std::uint8_t { no, yes };

// Whether collectives, gathers, reductions and transfers that use the same ports at the same time slow each other down.
enum class Ports : std::uint8_t { shared, separate };

// Solves the step.
//
//   time = max over stages of (end of the pipeline and of reductions that end later, plus finish_reduce)
//       + max over stages of finish, before and after the all-reduce over all ranks + host overhead
//
// Pipeline times are those of a micro-batch without data-parallel reductions, but for the last backward of a chunk,
// which is longer by what its reductions slow it down. Weights that are gathered during the first forwards set their
// earliest end times. api/plan_simulation_test.cpp compares steps with simulations of their graphs.
//
// Buffers are reused. The returned step is valid until the next call.
class StepSolver {
 public:
  StepSolver(const hardware::Stack& stack, network::PriceCache& prices)
      : fabric_(prices.fabric()), stack_(stack), prices_(prices), ports_(prices) {}

  // `known`: prices of the program's first blocks.
  const Step& solve(const parallel::Program& program, WorkPrice* known = nullptr, Explained explained = Explained::no,
                    Ports ports = Ports::shared);

 private:
  const network::Fabric& fabric_;
  const hardware::Stack& stack_;
  network::PriceCache& prices_;
  Step step_;
  parallel::PipelineSolver pipeline_;
  // Durations for PipelineTimes.
  std::vector<parallel::Ticks> forward_, backward_, weight_, pair_, transfer_, first_end_, last_extra_;
  PortMeetings ports_;
  std::vector<FirstGathers> first_gathers_;  // [chunk program]
  std::vector<Seconds> first_ends_, transfers_;

  friend class StepSolution;
};

}  // namespace orrery::estimate
