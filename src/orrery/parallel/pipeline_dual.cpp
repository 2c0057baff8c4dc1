#include "orrery/parallel/pipeline_dual.hpp"

#include "orrery/parallel/pipeline_shape.hpp"
#include "orrery/parallel/pipeline_walk.hpp"

namespace orrery::parallel {
namespace {

struct Period {
  std::int64_t iterations = 0;  // d; 0: no period found
  Ticks advance = 0;            // c
};

// By how much all times advanced over the last d full iterations, if by the same amount.
bool advanced_evenly(const PipelineShape& shape, const PipelineWalk& walk, std::int64_t last, Period& period) {
  for (std::int64_t i = 0; i < shape.stages; ++i) {
    const auto ends = walk.ends(i);
    const std::int64_t c = dualpipe_first_round(shape, i) + 2 * last;
    for (const std::int64_t at : {c, c - 1}) {
      const Ticks now = ends[static_cast<std::size_t>(at)];
      const Ticks before = ends[static_cast<std::size_t>(at - 2 * period.iterations)];
      if (i == 0 && at == c) { period.advance = now - before; }
      if (now - before != period.advance) { return false; }
    }
  }
  return true;
}

Period find_period(const PipelineShape& shape, const PipelineWalk& walk) {
  const std::int64_t last = shape.micro_batches / 2 - shape.stages;
  for (std::int64_t d = 1; d < last; ++d) {
    Period period{d, 0};
    if (advanced_evenly(shape, walk, last, period)) { return period; }
  }
  return {};
}

// Solves a shorter schedule and shifts its ends to those of `whole`.
void read_shorter(const PipelineShape& whole, const PipelineShape& shorter, const PipelineWalk& walk, Period period,
                  PipelineSolution& solution) {
  walk.read(solution);
  const std::int64_t missing = (whole.micro_batches - shorter.micro_batches) / 2;
  const Ticks later = missing / period.iterations * period.advance;
  for (Ticks& end : solution.stage_end) { end += later; }
  for (Ticks& start : solution.last_backward_start) { start += later; }
}

}  // namespace

void solve_dualpipe(const PipelineShape& shape, const PipelineTimes& times, PipelineStorage& storage,
                    PipelineSolution& solution) {
  PipelineShape shorter = shape;
  for (std::int64_t iterations = 8;; iterations *= 4) {
    shorter.micro_batches = 2 * (shape.stages + iterations);
    if (3 * shorter.micro_batches > shape.micro_batches) { break; }  // too little to save
    PipelineWalk walk(shorter, times, storage);
    walk.run();
    const Period period = find_period(shorter, walk);
    if (period.iterations == 0) { continue; }
    const std::int64_t missing = (shape.micro_batches - shorter.micro_batches) / 2;
    if (missing % period.iterations == 0) { return read_shorter(shape, shorter, walk, period, solution); }
    shorter.micro_batches += 2 * (missing % period.iterations);
    PipelineWalk longer(shorter, times, storage);
    longer.run();
    return read_shorter(shape, shorter, longer, period, solution);
  }
  PipelineWalk walk(shape, times, storage);
  walk.run();
  walk.read(solution);
}

}  // namespace orrery::parallel
