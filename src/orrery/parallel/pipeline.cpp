#include "orrery/parallel/pipeline.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline_shape.hpp"
#include "orrery/parallel/pipeline_wave.hpp"

namespace orrery::parallel {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

void check_times(const PipelineShape& shape, const PipelineTimes& times) {
  const std::int64_t tasks = shape.stages * shape.chunks;
  const std::int64_t hops = shape.chunks > 1 ? shape.stages : shape.stages - 1;
  ORRERY_ASSERT(static_cast<std::int64_t>(times.forward.size()) >= tasks);
  ORRERY_ASSERT(static_cast<std::int64_t>(times.backward.size()) >= tasks);
  ORRERY_ASSERT(static_cast<std::int64_t>(times.transfer.size()) >= hops);
  Ticks signs = 0;  // its sign bit is set when any duration's is
  for (std::int64_t i = 0; i < tasks; ++i) signs |= times.forward[index(i)] | times.backward[index(i)];
  for (std::int64_t i = 0; i < hops; ++i) signs |= times.transfer[index(i)];
  ORRERY_ASSERT(signs >= 0);
}

// All forwards before all backwards makes two flow shops of identical jobs, whose ends are known: job k leaves stage i
// at (sum of durations and transfers up to i) + k * (longest duration up to i). No stage is still busy with forwards
// when its first backward arrives, because that one comes after the last forward of the last stage.
void solve_gpipe(const PipelineShape& shape, const PipelineTimes& times, PipelineSolution& solution) {
  const std::int64_t p = shape.stages;
  Ticks longest = 0;
  Ticks front = 0;  // end of the first job on the stage
  for (std::int64_t i = 0; i < p; ++i) {
    front += times.forward[index(i)] + (i > 0 ? times.transfer[index(i - 1)] : 0);
    longest = std::max(longest, times.forward[index(i)]);
  }
  front += (shape.micro_batches - 1) * longest;
  longest = 0;
  for (std::int64_t i = p - 1; i >= 0; --i) {
    front += times.backward[index(i)] + (i < p - 1 ? times.transfer[index(i)] : 0);
    longest = std::max(longest, times.backward[index(i)]);
    solution.stage_end[index(i)] = front + (shape.micro_batches - 1) * longest;
    solution.last_backward_start[index(i)] = solution.stage_end[index(i)] - times.backward[index(i)];
  }
}

}  // namespace

const PipelineSolution& PipelineSolver::solve(const PipelineShape& shape, const PipelineTimes& times) {
  check_pipeline_shape(shape);
  check_times(shape, times);
  solution_.stage_end.resize(index(shape.stages));
  solution_.last_backward_start.resize(index(shape.stages * shape.chunks));
  if (shape.schedule == ScheduleKind::gpipe) {
    solve_gpipe(shape, times, solution_);
  } else if (shape.chunks == 1) {
    PipelineWave<false>(shape, times, scratch_).run(solution_);
  } else {
    PipelineWave<true>(shape, times, scratch_).run(solution_);
  }
  solution_.makespan = *std::max_element(solution_.stage_end.begin(), solution_.stage_end.end());
  return solution_;
}

}  // namespace orrery::parallel
