// Earliest ends of the first forwards, and last backwards that are longer than the others, against the recurrence
// evaluated task by task.
#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_test_cases.hpp"

namespace orrery::parallel::pipeline_first_last_test {
namespace {

// Ends of a stage's tasks, by (direction, virtual stage, micro-batch): repeats over all stages until nothing changes.
class Recurrence {
 public:
  Recurrence(const PipelineShape& shape, const PipelineTestTimes& times) : shape_(shape), times_(times) {}

  std::vector<Ticks> stage_ends() {
    std::vector<Ticks> free(static_cast<std::size_t>(shape_.stages), 0);
    std::vector<std::size_t> next(free.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < free.size(); ++i) {
        const auto order = stage_order(shape_, static_cast<std::int64_t>(i));
        for (; next[i] < order.size() && run(static_cast<std::int64_t>(i), order[next[i]], free[i]); ++next[i]) {
          moved = true;
        }
      }
    }
    return free;
  }

 private:
  bool run(std::int64_t stage, const PipelineTask& task, Ticks& free) {
    const bool forward = task.kind == PipelineTask::Kind::forward;
    const std::int64_t p = shape_.stages, q = task.chunk * p + stage, last = p * shape_.chunks - 1;
    const auto cell = static_cast<std::size_t>(stage * shape_.chunks + task.chunk);
    Ticks start = free;
    if (!(forward && q == 0)) {
      const std::int64_t from = forward ? q - 1 : std::min(q + 1, last);
      const auto input = ends_.find({forward || q == last, from, task.micro_batch});
      if (input == ends_.end()) { return false; }
      const auto hop = static_cast<std::size_t>(std::min(from, q) % p);
      start = std::max(start, input->second + (from == q ? 0 : times_.transfer[hop]));
    }
    free = start + (forward ? times_.forward[cell] : times_.backward[cell]);
    if (forward && task.micro_batch == 0) { free = std::max(free, times_.first_forward_end[cell]); }
    const bool is_last = task.micro_batch == (shape_.schedule == ScheduleKind::gpipe ? 0 : shape_.micro_batches - 1);
    if (!forward && is_last && !times_.last_backward_extra.empty()) { free += times_.last_backward_extra[cell]; }
    ends_[{forward, q, task.micro_batch}] = free;
    return true;
  }

  const PipelineShape& shape_;
  const PipelineTestTimes& times_;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, Ticks> ends_;
};

// For the schedules whose backward is one task, which the recurrence above covers.
PipelineShape any_shape() {
  const auto schedule = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved);
  const auto p = *rc::gen::inRange<std::int64_t>(1, 7);
  const auto v = *rc::gen::inRange<std::int64_t>(1, 5);
  return shape_near(schedule, p, v, *rc::gen::inRange<std::int64_t>(1, 25));
}

PipelineTestTimes any_times(const PipelineShape& shape) {
  return drawn_times(shape, 8000, [](Ticks most) { return *rc::gen::inRange<Ticks>(0, most); });
}

RC_GTEST_PROP(PipelineFirstLast, ends_are_those_of_the_recurrence, ()) {
  const PipelineShape shape = any_shape();
  const PipelineTestTimes times = any_times(shape);
  RC_ASSERT(PipelineSolver().solve(shape, times.view()).stage_end == Recurrence(shape, times).stage_ends());
}

PipelineTestTimes with_long_last_tasks(const PipelineShape& shape) {
  PipelineTestTimes times = any_times(shape);
  times.last_backward_extra =
      *rc::gen::container<std::vector<Ticks>>(cells_of(shape), rc::gen::inRange<Ticks>(0, 2000));
  return times;
}

RC_GTEST_PROP(PipelineFirstLast, longer_last_backwards_end_when_the_recurrence_says, ()) {
  const PipelineShape shape = any_shape();
  const PipelineTestTimes times = with_long_last_tasks(shape);
  RC_ASSERT(PipelineSolver().solve(shape, times.view()).stage_end == Recurrence(shape, times).stage_ends());
}

RC_GTEST_PROP(PipelineFirstLast, longer_last_backwards_start_when_the_timeline_says, ()) {
  const auto schedule = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                          ScheduleKind::zero_bubble);
  const auto p = *rc::gen::inRange<std::int64_t>(1, 7);
  const auto v = *rc::gen::inRange<std::int64_t>(1, 5);
  const PipelineShape shape = shape_near(schedule, p, v, *rc::gen::inRange<std::int64_t>(1, 25));
  const PipelineTestTimes times = with_long_last_tasks(shape);
  PipelineSolver solver;
  const PipelineSolution& solution = solver.solve(shape, times.view());
  const auto stages = timeline(shape, times.view());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    RC_ASSERT(solution.stage_end[i] == stages[i].back().end);
    const auto chunks = static_cast<std::size_t>(shape.chunks);
    for (std::size_t c = 0; c < chunks; ++c) {
      Ticks start = 0;
      for (const SolvedTask& solved : stages[i]) {
        const bool completes = solved.task.kind == PipelineTask::Kind::weight ||
                               (solved.task.kind == PipelineTask::Kind::backward && !solved.task.splits);
        if (completes && solved.task.chunk == static_cast<std::int32_t>(c)) { start = solved.start; }
      }
      RC_ASSERT(solution.last_backward_start[i * chunks + c] == start);
    }
  }
}

// End of the backward that is `later` backwards after the last one of a chunk, or of the last one.
Ticks end_of_later_backward(const std::vector<SolvedTask>& tasks, std::size_t chunk, std::int64_t last_micro_batch,
                            std::size_t later) {
  std::vector<Ticks> ends;
  std::size_t last = 0;
  for (const SolvedTask& solved : tasks) {
    if (solved.task.kind != PipelineTask::Kind::backward) { continue; }
    const bool is_of_chunk = solved.task.chunk == static_cast<std::int32_t>(chunk);
    if (is_of_chunk && solved.task.micro_batch == last_micro_batch) { last = ends.size(); }
    ends.push_back(solved.end);
  }
  return ends[std::min(last + later, ends.size() - 1)];
}

RC_GTEST_PROP(PipelineFirstLast, aligned_reductions_start_after_as_many_backwards_as_there_are_stages_before, ()) {
  const auto p = *rc::gen::inRange<std::int64_t>(1, 7);
  const auto v = *rc::gen::inRange<std::int64_t>(2, 5);
  const PipelineShape shape = shape_near(ScheduleKind::interleaved, p, v, *rc::gen::inRange<std::int64_t>(1, 25));
  const PipelineTestTimes times = with_long_last_tasks(shape);
  PipelineSolver solver;
  const PipelineSolution& solution = solver.solve(shape, times.view());
  const auto stages = timeline(shape, times.view());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(v); ++c) {
      RC_ASSERT(solution.aligned_reduce_start[i * static_cast<std::size_t>(v) + c] ==
                end_of_later_backward(stages[i], c, shape.micro_batches - 1, i));
    }
  }
}

RC_GTEST_PROP(PipelineFirstLast, an_early_limit_changes_nothing, ()) {
  const auto p = *rc::gen::inRange<std::int64_t>(1, 7);
  const PipelineShape shape = shape_near(*rc::gen::elementOf(kEverySchedule), p, 2, *rc::gen::inRange(1, 25));
  PipelineTestTimes times = any_times(shape);
  PipelineSolver with, without;
  std::fill(times.first_forward_end.begin(), times.first_forward_end.end(), 0);
  const auto ends = with.solve(shape, times.view()).stage_end;
  times.first_forward_end.clear();
  RC_ASSERT(ends == without.solve(shape, times.view()).stage_end);
}

// Equal stages are never idle after the last one has started, so a delay of the first micro-batch remains: (m + p - 1)
// (f + b) = 11 x 300, and stage 0 ends its first forward at 1000 instead of 100.
TEST(PipelineFirstLast, equal_stages_never_make_up_for_a_late_start) {
  const PipelineShape shape{ScheduleKind::one_f_one_b, 4, 1, 8};
  PipelineTestTimes times = equal_times(shape, 100, 200, 0);
  times.first_forward_end = {1000, 0, 0, 0};
  EXPECT_EQ(PipelineSolver().solve(shape, times.view()).makespan, 11 * 300 + 900);
}

// Backwards of the last micro-batch wait for each other: (m + p - 1) (f + b) = 5 x 300, and four times 50.
TEST(PipelineFirstLast, longer_last_backwards_add_up_along_the_pipeline) {
  const PipelineShape shape{ScheduleKind::one_f_one_b, 4, 1, 2};
  PipelineTestTimes times = equal_times(shape, 100, 200, 0);
  times.last_backward_extra = {50, 50, 50, 50};
  EXPECT_EQ(PipelineSolver().solve(shape, times.view()).makespan, 5 * 300 + 4 * 50);
}

// Weight tasks wait for nobody: only the stage that ends last counts.
TEST(PipelineFirstLast, longer_last_weight_tasks_do_not_add_up) {
  const PipelineShape shape{ScheduleKind::zero_bubble, 4, 1, 8};
  PipelineTestTimes times = equal_times(shape, 100, 100, 0, 100);
  const Ticks plain = PipelineSolver().solve(shape, times.view()).makespan;
  times.last_backward_extra = {50, 50, 50, 50};
  EXPECT_EQ(PipelineSolver().solve(shape, times.view()).makespan, plain + 50);
}

// Stage 0 is never idle: its ten tasks of 100 take 1000 in the order F F B F B F B F B B. Its first backward starts at
// 200, and its input is ready at 120, so stage 1 may be late by up to 80.
TEST(PipelineFirstLast, a_stage_with_time_to_spare_makes_up_for_it) {
  const PipelineShape shape{ScheduleKind::one_f_one_b, 2, 1, 5};
  PipelineTestTimes times{{100, 10}, {100, 10}, {0, 0}, {0, 0}, {}, {}};
  EXPECT_EQ(PipelineSolver().solve(shape, times.view()).makespan, 1000);
  times.first_forward_end = {0, 190};
  EXPECT_EQ(PipelineSolver().solve(shape, times.view()).makespan, 1000);
  times.first_forward_end = {0, 191};
  EXPECT_EQ(PipelineSolver().solve(shape, times.view()).makespan, 1001);
}

TEST(PipelineFirstLast, too_few_ends_break_the_contract) {
  const PipelineTestTimes times{{1, 1}, {1, 1}, {0, 0}, {0}, {}, {}};
  EXPECT_THROW((void)PipelineSolver().solve({ScheduleKind::one_f_one_b, 2, 1, 3}, times.view()), InternalError);
}

}  // namespace
}  // namespace orrery::parallel::pipeline_first_last_test
