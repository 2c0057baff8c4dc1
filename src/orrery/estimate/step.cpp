#include "orrery/estimate/step.hpp"

#include <cmath>

#include "orrery/core/error.hpp"

namespace orrery::estimate {

using parallel::ChunkProgram;
using parallel::Program;
using parallel::Ticks;

namespace {

// Ticks are picoseconds, or a thousand times coarser as often as it takes for a whole step to fit 64 bits with room to
// spare (steps beyond ten days: rounding stays below a part in 1e15 of the step).
class Clock {
 public:
  explicit Clock(Seconds longest) {
    constexpr double kMostTicks = 1e18;
    while (longest.value() * ticks_per_second_ > kMostTicks) { ticks_per_second_ /= 1e3; }
  }
  [[nodiscard]] Ticks ticks(Seconds time) const {
    ORRERY_ASSERT(time >= Seconds(0) && is_finite(time));
    return std::llround(time.value() * ticks_per_second_);
  }
  [[nodiscard]] Seconds seconds(Ticks ticks) const { return Seconds(static_cast<double>(ticks) / ticks_per_second_); }

 private:
  double ticks_per_second_ = 1e12;
};

ChunkCost price_chunk(const ChunkProgram& chunk, const std::vector<Cost>& blocks) {
  ChunkCost cost;
  cost.forward = segment_work(chunk.forward, blocks);
  cost.backward = segment_work(chunk.backward, blocks);
  const Streams forward = run_segment(chunk.forward, blocks, {});
  const Streams backward = run_segment(chunk.backward, blocks, {});
  const Seconds backward_end = chunk.waits_for_reduce ? max(backward.compute, backward.data_parallel) : backward.compute;
  cost.forward_stall = max(Seconds(0), forward.compute - cost.forward.time);
  cost.backward_stall = max(Seconds(0), backward_end - cost.backward.time);
  return cost;
}

class StepSolver {
 public:
  StepSolver(const Program& program, const network::Fabric& fabric, const hardware::Stack& stack)
      : program_(program), fabric_(fabric), stack_(stack), vpp_(static_cast<std::size_t>(program.plan.vpp)) {}

  Step run(parallel::PipelineSolver& solver, Transfers transfers) {
    price_pieces();
    solve_pipeline(solver, transfers);
    step_.start_delay = first_forward_delay();
    find_critical_stage();
    for (const Cost& finish : step_.finishes) { step_.finish = max(step_.finish, finish.time); }
    step_.time = step_.start_delay + step_.pipeline_end + step_.reduce_tail + step_.finish + stack_.host_overhead;
    return std::move(step_);
  }

 private:
  void price_pieces() {
    for (const auto& block : program_.blocks) { step_.blocks.push_back(price_block(block, fabric_, program_.mesh)); }
    for (const auto& rank_class : program_.classes) {
      for (const auto& chunk : rank_class.chunks) { step_.chunks.push_back(price_chunk(chunk, step_.blocks)); }
      step_.finishes.push_back(segment_work(rank_class.finish, step_.blocks));
    }
  }

  [[nodiscard]] Seconds transfer_time(std::size_t stage, Transfers transfers) const {
    if (transfers == Transfers::free || program_.plan.pp == 1) { return Seconds(0); }
    return fabric_.transfer(program_.transfer_bytes, program_.mesh.transfer_dimension[stage]);
  }

  // No path through the schedule is longer than everything done one after another.
  [[nodiscard]] Seconds everything_in_a_row() const {
    Seconds sum;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::size_t c = 0; c < vpp_; ++c) {
        const ChunkCost& chunk = chunk_cost(stage, c);
        sum += chunk.forward.time + chunk.forward_stall + chunk.backward.time + chunk.backward_stall;
        sum += 2.0 * transfer_time(stage, Transfers::priced);
      }
    }
    return static_cast<double>(program_.pipeline.micro_batches) * sum;
  }

  void solve_pipeline(parallel::PipelineSolver& solver, Transfers transfers) {
    clock_ = Clock(everything_in_a_row());
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::size_t c = 0; c < vpp_; ++c) {
        const ChunkCost& chunk = chunk_cost(stage, c);
        forward_.push_back(clock_.ticks(chunk.forward.time + chunk.forward_stall));
        backward_.push_back(clock_.ticks(chunk.backward.time + chunk.backward_stall));
      }
      transfer_.push_back(clock_.ticks(transfer_time(stage, transfers)));
    }
    pipeline_ = &solver.solve(program_.pipeline, {forward_, backward_, transfer_});
  }

  // When the first micro-batch reaches chunk c of a stage if nothing delays it: the path through all stages before.
  [[nodiscard]] Ticks first_arrival(std::size_t stage, std::size_t chunk) const {
    Ticks arrival = 0;
    for (std::size_t q = 0; q < chunk * stages() + stage; ++q) {
      arrival += forward_[(q % stages()) * vpp_ + q / stages()] + transfer_[q % stages()];
    }
    return arrival;
  }

  [[nodiscard]] Seconds first_forward_delay() const {
    Seconds delay;
    if (program_.plan.zero == 3) { return delay; }  // gathered in every forward, and priced there
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      Seconds stream;
      for (std::size_t c = 0; c < vpp_; ++c) {
        const auto& chunk = chunk_program(stage, c);
        if (segment_data_parallel(chunk.first_forward, step_.blocks) == Seconds(0)) { continue; }
        delay = max(delay, gather_delay(chunk.first_forward, step_.blocks, clock_.seconds(first_arrival(stage, c)), stream));
      }
    }
    return delay;
  }

  // When all gradients of a stage are synchronised, counted from the pipeline's start.
  [[nodiscard]] Seconds gradients_ready(std::size_t stage) const {
    const auto& rank_class = program_.classes[class_index(stage)];
    const Seconds end = clock_.seconds(pipeline_->stage_end[stage]);
    Seconds stream;  // of data-parallel reductions
    for (std::size_t c = vpp_; c-- > 0;) {
      const auto& chunk = chunk_program(stage, c);
      if (chunk.waits_for_reduce) { continue; }
      const Seconds start = clock_.seconds(pipeline_->last_backward_start[stage * vpp_ + c]);
      stream = run_segment(chunk.last_backward, step_.blocks, {start, stream}).data_parallel;
    }
    return max(end, stream) + segment_work(rank_class.finish_reduce, step_.blocks).time;
  }

  void find_critical_stage() {
    Seconds latest(-1.0);
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      const Seconds ready = gradients_ready(stage);
      if (ready > latest) {
        latest = ready;
        step_.critical_stage = static_cast<std::int64_t>(stage);
        step_.pipeline_end = clock_.seconds(pipeline_->stage_end[stage]);
        step_.reduce_tail = ready - step_.pipeline_end;
      }
    }
  }

  [[nodiscard]] std::size_t stages() const { return static_cast<std::size_t>(program_.plan.pp); }
  [[nodiscard]] std::size_t class_index(std::size_t stage) const {
    return static_cast<std::size_t>(program_.class_of_stage[stage]);
  }
  [[nodiscard]] const ChunkCost& chunk_cost(std::size_t stage, std::size_t chunk) const {
    return step_.chunks[class_index(stage) * vpp_ + chunk];
  }
  [[nodiscard]] const ChunkProgram& chunk_program(std::size_t stage, std::size_t chunk) const {
    return program_.classes[class_index(stage)].chunks[chunk];
  }

  const Program& program_;
  const network::Fabric& fabric_;
  const hardware::Stack& stack_;
  std::size_t vpp_;
  Step step_;
  Clock clock_{Seconds(0)};
  std::vector<Ticks> forward_, backward_, transfer_;
  const parallel::PipelineSolution* pipeline_ = nullptr;
};

}  // namespace

Step solve_step(const Program& program, const network::Fabric& fabric, const hardware::Stack& stack,
                parallel::PipelineSolver& solver, Transfers transfers) {
  return StepSolver(program, fabric, stack).run(solver, transfers);
}

}  // namespace orrery::estimate
