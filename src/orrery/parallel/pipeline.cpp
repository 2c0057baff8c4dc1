#include "orrery/parallel/pipeline.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/parallel/pipeline_dual.hpp"
#include "orrery/parallel/pipeline_shape.hpp"
#include "orrery/parallel/pipeline_walk.hpp"
#include "orrery/parallel/pipeline_wave.hpp"

namespace orrery::parallel {
namespace {

void check_times(const PipelineShape& shape, const PipelineTimes& times) {
  const std::int64_t tasks = shape.stages * shape.chunks;
  const bool loops = shape.chunks > 1 && shape.schedule == ScheduleKind::interleaved;
  const std::int64_t hops = loops ? shape.stages : shape.stages - 1;
  const auto has = [tasks](std::span<const Ticks> list) { return static_cast<std::int64_t>(list.size()) >= tasks; };
  ORRERY_ASSERT(has(times.forward));
  ORRERY_ASSERT(has(times.backward));
  ORRERY_ASSERT(splits_backward(shape.schedule) ? has(times.weight) : times.weight.empty());
  const std::int64_t pairs = has_pairs(shape) ? tasks * shape.chunks : 0;
  ORRERY_ASSERT(pairs == 0 ? times.pair.empty() : std::ssize(times.pair) >= pairs);
  ORRERY_ASSERT(static_cast<std::int64_t>(times.transfer.size()) >= hops);
  ORRERY_ASSERT(times.first_forward_end.empty() || has(times.first_forward_end));
  ORRERY_ASSERT(times.last_backward_extra.empty() ||
                (has(times.last_backward_extra) && shape.schedule != ScheduleKind::dualpipe));
  Ticks signs = 0;  // negative if any duration is
  for (std::int64_t i = 0; i < tasks; ++i) { signs |= times.forward[to_index(i)] | times.backward[to_index(i)]; }
  for (std::int64_t i = 0; i < hops; ++i) { signs |= times.transfer[to_index(i)]; }
  for (const Ticks ticks : times.weight) { signs |= ticks; }
  for (const Ticks ticks : times.pair) { signs |= ticks; }
  for (const Ticks ticks : times.last_backward_extra) { signs |= ticks; }
  ORRERY_ASSERT(signs >= 0);
}

// End of the first micro-batch's forward on each stage.
void run_first_job(const PipelineShape& shape, const PipelineTimes& times, std::vector<Ticks>& ends) {
  Ticks end = 0;
  for (std::int64_t i = 0; i < shape.stages; ++i) {
    end += times.forward[to_index(i)] + (i > 0 ? times.transfer[to_index(i - 1)] : 0);
    if (!times.first_forward_end.empty()) { end = std::max(end, times.first_forward_end[to_index(i)]); }
    ends[to_index(i)] = end;
  }
}

// When the last of the m - 1 micro-batches after the first leaves the last stage. The longest path leaves the first
// micro-batch on some stage i; from i on it passes every stage once and the slowest one m - 2 additional times.
Ticks last_forward_end(const PipelineShape& shape, const PipelineTimes& times, const std::vector<Ticks>& first) {
  const std::int64_t p = shape.stages;
  if (shape.micro_batches == 1) { return first[to_index(p - 1)]; }
  Ticks end = 0, way = 0, slowest = 0;
  for (std::int64_t i = p - 1; i >= 0; --i) {
    way += times.forward[to_index(i)] + (i < p - 1 ? times.transfer[to_index(i)] : 0);
    slowest = std::max(slowest, times.forward[to_index(i)]);
    end = std::max(end, first[to_index(i)] + way + (shape.micro_batches - 2) * slowest);
  }
  return end;
}

// All forwards before all backwards are two flow shops of identical jobs with known end times: in the second, job k
// leaves stage i at (sum of durations and transfers up to i) + k * (longest duration up to i). No stage is still busy
// with forwards when its first backward arrives, because that follows the last forward of the last stage.
void solve_gpipe(const PipelineShape& shape, const PipelineTimes& times, PipelineSolution& solution) {
  const std::int64_t p = shape.stages;
  run_first_job(shape, times, solution.stage_end);
  Ticks front = last_forward_end(shape, times, solution.stage_end);
  Ticks longest = 0;
  for (std::int64_t i = p - 1; i >= 0; --i) {
    front += times.backward[to_index(i)] + (i < p - 1 ? times.transfer[to_index(i)] : 0);
    longest = std::max(longest, times.backward[to_index(i)]);
    solution.stage_end[to_index(i)] = front + (shape.micro_batches - 1) * longest;
    solution.last_backward_start[to_index(i)] = solution.stage_end[to_index(i)] - times.backward[to_index(i)];
  }
}

// Adds last_backward_extra where one task of every stage, its last, is longer. Backwards of one micro-batch wait for
// each other, last stage first, and for nothing else that is longer; weight tasks wait for nobody.
void lengthen_last_tasks(const PipelineShape& shape, const PipelineTimes& times, PipelineSolution& solution) {
  const bool splits = splits_backward(shape.schedule);
  for (std::int64_t i = shape.stages - 1; i >= 0; --i) {
    Ticks& start = solution.last_backward_start[to_index(i)];
    Ticks& end = solution.stage_end[to_index(i)];
    const Ticks duration = end - start + times.last_backward_extra[to_index(i)];
    const bool waits = !splits && i + 1 < shape.stages;
    if (waits) { start = std::max(start, solution.stage_end[to_index(i + 1)] + times.transfer[to_index(i)]); }
    end = start + duration;
  }
}

void solve_kind(const PipelineShape& shape, const PipelineTimes& times, PipelineStorage& storage,
                PipelineSolution& solution) {
  if (shape.pairs) {
    PipelineWalk walk(shape, times, storage);
    walk.run();
    return walk.read(solution);
  }
  switch (shape.schedule) {
    case ScheduleKind::gpipe: return solve_gpipe(shape, times, solution);
    case ScheduleKind::one_f_one_b:
      return PipelineWave<ScheduleKind::one_f_one_b>(shape, times, storage.numbers).run(solution);
    case ScheduleKind::interleaved:
      if (shape.chunks == 1) {
        return PipelineWave<ScheduleKind::one_f_one_b>(shape, times, storage.numbers).run(solution);
      }
      return PipelineWave<ScheduleKind::interleaved>(shape, times, storage.numbers).run(solution);
    case ScheduleKind::zero_bubble:
      return PipelineWave<ScheduleKind::zero_bubble>(shape, times, storage.numbers).run(solution);
    case ScheduleKind::dualpipe: return solve_dualpipe(shape, times, storage, solution);
  }
}

}  // namespace

const PipelineSolution& PipelineSolver::solve(const PipelineShape& shape, const PipelineTimes& times) {
  check_pipeline_shape(shape);
  check_times(shape, times);
  solution_.stage_end.resize(to_index(shape.stages));
  solution_.last_backward_start.resize(to_index(shape.stages * shape.chunks));
  const bool is_interleaved = shape.schedule == ScheduleKind::interleaved && shape.chunks > 1;
  solution_.aligned_reduce_start.resize(is_interleaved ? to_index(shape.stages * shape.chunks) : 0);
  solve_kind(shape, times, storage_, solution_);
  const bool leaves_extra = shape.chunks == 1 && !shape.pairs;
  if (!times.last_backward_extra.empty() && leaves_extra) { lengthen_last_tasks(shape, times, solution_); }
  solution_.makespan = *std::max_element(solution_.stage_end.begin(), solution_.stage_end.end());
  return solution_;
}

std::vector<std::vector<SolvedTask>> timeline(const PipelineShape& shape, const PipelineTimes& times) {
  check_pipeline_shape(shape);
  check_times(shape, times);
  PipelineStorage storage;
  PipelineWalk walk(shape, times, storage);
  walk.run();
  std::vector<std::vector<SolvedTask>> stages(to_index(shape.stages));
  for (std::int64_t i = 0; i < shape.stages; ++i) {
    const auto tasks = walk.tasks(i);
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      stages[to_index(i)].push_back({tasks[t], walk.starts(i)[t], walk.ends(i)[t]});
    }
  }
  return stages;
}

}  // namespace orrery::parallel
