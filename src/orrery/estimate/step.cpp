#include "orrery/estimate/step.hpp"

#include <cmath>

#include "orrery/core/error.hpp"

namespace orrery::estimate {

using parallel::ChunkProgram;
using parallel::Program;
using parallel::Ticks;

namespace {

// Ticks are picoseconds, or a thousand times coarser as often as it takes for the work of all stages in a row to fit 64
// bits with room to spare (more than eleven days of it). Durations are rounded up, so that a step never ends before the
// work in it could have: Estimator::step_time_bound relies on that.
class Clock {
 public:
  explicit Clock(Seconds longest) {
    constexpr double kMostTicks = 1e18;
    while (longest.value() * ticks_per_second_ > kMostTicks) { ticks_per_second_ /= 1e3; }
  }
  [[nodiscard]] Ticks ticks(Seconds time) const {
    ORRERY_ASSERT(time >= Seconds(0) && is_finite(time));
    return static_cast<Ticks>(std::ceil(time.value() * ticks_per_second_));
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
  const Seconds backward_end =
      chunk.waits_for_reduce ? max(backward.compute, backward.data_parallel) : backward.compute;
  cost.forward_stall = max(Seconds(0), forward.compute - cost.forward.time);
  cost.backward_stall = max(Seconds(0), backward_end - cost.backward.time);
  return cost;
}

class StepSolver {
 public:
  StepSolver(const Program& program, const network::Fabric& fabric, const hardware::Stack& stack)
      : program_(program), fabric_(fabric), stack_(stack), vpp_(static_cast<std::size_t>(program.plan.vpp)) {}

  Step run(parallel::PipelineSolver& solver, Explained explained) {
    price_pieces();
    set_times();
    pipeline_ = &solver.solve(program_.pipeline, {forward_, backward_, transfer_, first_end_});
    find_critical_stage();
    for (const Cost& finish : step_.finishes) { step_.finish = max(step_.finish, finish.time); }
    step_.time = step_.pipeline_end + step_.reduce_tail + step_.finish + stack_.host_overhead;
    if (explained == Explained::yes) { solve_variants(solver); }
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

  [[nodiscard]] Seconds transfer_time(std::size_t stage) const {
    if (program_.plan.pp == 1) { return Seconds(0); }
    return fabric_.transfer(program_.transfer_bytes, program_.mesh.transfer_dimension[stage]);
  }

  // No path through the schedule is longer than everything done one after another.
  [[nodiscard]] Seconds everything_in_a_row() const {
    Seconds sum;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::size_t c = 0; c < vpp_; ++c) {
        const ChunkCost& chunk = chunk_cost(stage, c);
        sum += chunk.forward.time + chunk.forward_stall + chunk.backward.time + chunk.backward_stall;
        sum += 2.0 * transfer_time(stage);
      }
    }
    return static_cast<double>(program_.pipeline.micro_batches) * sum;
  }

  void set_times() {
    const std::vector<Seconds> first_ends = first_forward_ends();
    Seconds latest;
    for (const Seconds end : first_ends) { latest = max(latest, end); }
    clock_ = Clock(everything_in_a_row() + latest);
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::size_t c = 0; c < vpp_; ++c) {
        const ChunkCost& chunk = chunk_cost(stage, c);
        forward_.push_back(clock_.ticks(chunk.forward.time + chunk.forward_stall));
        backward_.push_back(clock_.ticks(chunk.backward.time + chunk.backward_stall));
      }
      transfer_.push_back(clock_.ticks(transfer_time(stage)));
    }
    for (const Seconds end : first_ends) { first_end_.push_back(clock_.ticks(end)); }
  }

  // How early the first forward of every chunk can have ended when updated weights are gathered under it: all gathers
  // of a stage are issued when the step starts. Empty when there are none; chunks whose every forward gathers its own
  // have nothing to do with it.
  [[nodiscard]] std::vector<Seconds> first_forward_ends() const {
    std::vector<Seconds> ends(stages() * vpp_);
    bool any = false;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      Seconds stream;
      for (std::size_t c = 0; c < vpp_; ++c) {
        const ChunkProgram& chunk = chunk_program(stage, c);
        if (segment_data_parallel(chunk.forward, step_.blocks) > Seconds(0)) { continue; }
        if (segment_data_parallel(chunk.first_forward, step_.blocks) == Seconds(0)) { continue; }
        ends[stage * vpp_ + c] = earliest_end(chunk.first_forward, step_.blocks, stream);
        any = true;
      }
    }
    if (!any) { ends.clear(); }
    return ends;
  }

  // When the critical stage's pipeline would end if one thing were free.
  void solve_variants(parallel::PipelineSolver& solver) {
    const auto stage = static_cast<std::size_t>(step_.critical_stage);
    const auto end = [&](const parallel::PipelineTimes& times) {
      return clock_.seconds(solver.solve(program_.pipeline, times).stage_end[stage]);
    };
    const std::vector<Ticks> free(transfer_.size(), 0);
    step_.without_transfers = end({forward_, backward_, free, first_end_});
    step_.without_first_gathers = first_end_.empty() ? step_.pipeline_end : end({forward_, backward_, transfer_});
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
  std::vector<Ticks> forward_, backward_, transfer_, first_end_;
  const parallel::PipelineSolution* pipeline_ = nullptr;
};

}  // namespace

Step solve_step(const Program& program, const network::Fabric& fabric, const hardware::Stack& stack,
                parallel::PipelineSolver& solver, Explained explained) {
  return StepSolver(program, fabric, stack).run(solver, explained);
}

}  // namespace orrery::estimate
