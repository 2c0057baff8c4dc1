// Laws of every solution of the pipeline solver.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_test_cases.hpp"

namespace orrery::parallel::pipeline_law_test {
namespace {

Ticks makespan(const PipelineShape& shape, const PipelineTestTimes& times) {
  return PipelineSolver().solve(shape, times.view()).makespan;
}

PipelineShape any_shape() {
  const auto p = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto v = *rc::gen::inRange<std::int64_t>(1, 5);
  const auto shape = shape_near(*rc::gen::elementOf(kEverySchedule), p, v, *rc::gen::inRange<std::int64_t>(1, 41));
  return *rc::gen::arbitrary<bool>() ? with_pairs(shape) : shape;
}

PipelineTestTimes any_times(const PipelineShape& shape) {
  return drawn_times(shape, 0, [](Ticks most) { return *rc::gen::inRange<Ticks>(0, most); });
}

// Time for which a task occupies its stage.
Ticks work(const PipelineShape& shape, const PipelineTestTimes& times, const PipelineTask& task, std::int64_t stage) {
  const auto cell = static_cast<std::size_t>(stage * shape.chunks + task.chunk);
  switch (task.kind) {
    case PipelineTask::Kind::forward: return times.forward[cell];
    case PipelineTask::Kind::weight: return times.weight[cell];
    case PipelineTask::Kind::pair: return times.pair[pair_place(shape, stage, task.chunk, task.paired_chunk)];
    case PipelineTask::Kind::backward: break;
  }
  const bool whole = splits_backward(shape.schedule) && !task.splits;
  return times.backward[cell] + (whole ? times.weight[cell] : 0);
}

Ticks sum(const std::vector<Ticks>& values) { return std::accumulate(values.begin(), values.end(), Ticks{0}); }

// On equal stages the first micro-batch returns after p (f + b), and each of the other m - 1 adds f + b. The bubble is
// the rest: (m + p - 1) (f + b) - m (f + b) = (p - 1) (f + b), a fraction (p - 1) / m of the work.
TEST(PipelineLaw, one_f_one_b_and_gpipe_bubble_is_p_minus_1_over_m) {
  for (std::int64_t p = 1; p <= 9; ++p) {
    for (const std::int64_t m : {1, 2, 3, 8, 50}) {
      for (const auto schedule : {ScheduleKind::one_f_one_b, ScheduleKind::gpipe}) {
        const PipelineShape shape{schedule, p, 1, m};
        EXPECT_EQ(makespan(shape, equal_times(shape, 100, 230, 0)), (m + p - 1) * 330);
      }
    }
  }
}

// Each of the v chunks is 1 / v of a stage, so filling and draining take p - 1 chunks instead of p - 1 stages.
TEST(PipelineLaw, interleaved_bubble_is_p_minus_1_over_v_m) {
  for (std::int64_t p = 1; p <= 6; ++p) {
    for (std::int64_t v = 2; v <= 4; ++v) {
      for (std::int64_t m = p; m <= 6 * p; m += p) {
        const PipelineShape shape{ScheduleKind::interleaved, p, v, m};
        EXPECT_EQ(makespan(shape, equal_times(shape, 100, 230, 0)), (v * m + p - 1) * 330) << p << " " << v << " " << m;
      }
    }
  }
}

// The first forward and the last backward have no partner.
TEST(PipelineLaw, without_pipeline_all_but_one_micro_batch_run_in_pairs) {
  for (const std::int64_t m : {1, 2, 3, 50}) {
    const PipelineShape shape = with_pairs({ScheduleKind::one_f_one_b, 1, 1, m});
    PipelineTestTimes times = equal_times(shape, 100, 230, 0);
    times.pair.assign(1, 250);
    EXPECT_EQ(makespan(shape, times), 330 + (m - 1) * 250);
  }
}

// As without pairs: filling and draining take p - 1 chunks.
TEST(PipelineLaw, interleaved_bubble_with_pairs_as_long_as_their_parts_is_p_minus_1_chunks) {
  for (std::int64_t p = 2; p <= 6; ++p) {
    for (std::int64_t v = 2; v <= 4; ++v) {
      for (std::int64_t m = p; m <= 6 * p; m += p) {
        const PipelineShape shape = with_pairs({ScheduleKind::interleaved, p, v, m});
        EXPECT_EQ(makespan(shape, equal_times(shape, 100, 230, 0)), (v * m + p - 1) * 330) << p << " " << v << " " << m;
      }
    }
  }
}

// Possible in a test only because steady periods are skipped; stepping would take minutes.
TEST(PipelineLaw, a_billion_micro_batches_are_solved_as_fast_as_a_hundred) {
  const std::int64_t m = 1'000'000'000;
  const PipelineShape plain{ScheduleKind::one_f_one_b, 16, 1, m};
  EXPECT_EQ(makespan(plain, equal_times(plain, 100, 230, 0)), (m + 15) * 330);
  const PipelineShape interleaved{ScheduleKind::interleaved, 16, 4, m};
  EXPECT_EQ(makespan(interleaved, equal_times(interleaved, 100, 230, 0)), (4 * m + 15) * 330);
  const PipelineShape split{ScheduleKind::zero_bubble, 16, 1, m};
  EXPECT_EQ(makespan(split, equal_times(split, 100, 120, 0, 90)), m * 310 + 15 * 130);
  const PipelineShape dual{ScheduleKind::dualpipe, 16, 2, m};
  EXPECT_EQ(makespan(dual, equal_times(dual, 100, 100, 0, 80)), m * 280 + 7 * (280 + 180 - 3 * 80));
}

// 1F1B keeps at most p micro-batches in the pipeline. A micro-batch returns to the first of p equal stages after p (f +
// b) + 2 (p - 1) t, and only then the p-th after it may enter: p more micro-batches take that much longer.
TEST(PipelineLaw, one_f_one_b_pays_two_p_minus_1_transfers_for_every_p_micro_batches) {
  for (const std::int64_t p : {1, 2, 4, 8, 16}) {
    const PipelineShape shape{ScheduleKind::one_f_one_b, p, 1, 32 * p};
    const PipelineShape longer{ScheduleKind::one_f_one_b, p, 1, 33 * p};
    const PipelineTestTimes times = equal_times(shape, 1000, 2000, 30);
    EXPECT_EQ(makespan(longer, times) - makespan(shape, times), p * 3000 + 2 * (p - 1) * 30) << p;
  }
}

RC_GTEST_PROP(PipelineLaw, no_stage_ends_before_its_own_work_is_done, ()) {
  const PipelineShape shape = any_shape();
  const PipelineTestTimes times = any_times(shape);
  PipelineSolver solver;
  const PipelineSolution& solution = solver.solve(shape, times.view());
  for (std::int64_t i = 0; i < shape.stages; ++i) {
    Ticks busy = 0;
    for (const PipelineTask& task : stage_order(shape, i)) { busy += work(shape, times, task, i); }
    RC_ASSERT(solution.stage_end[static_cast<std::size_t>(i)] >= busy);
    RC_ASSERT(solution.makespan >= solution.stage_end[static_cast<std::size_t>(i)]);
    for (std::int64_t c = 0; c < shape.chunks; ++c) {
      const auto cell = static_cast<std::size_t>(i * shape.chunks + c);
      const Ticks last = splits_backward(shape.schedule) ? times.weight[cell] : times.backward[cell];
      RC_ASSERT(solution.last_backward_start[cell] + last <= solution.stage_end[static_cast<std::size_t>(i)]);
    }
  }
}

// A single micro-batch passes every chunk of every stage in both directions, and every border between them: v times the
// hops inside the pipeline, v - 1 times the hop from the last stage to the first. The weight task of stage 0, if any,
// is last. (Excluded: pairs, which may be shorter than their parts.)
RC_GTEST_PROP(PipelineLaw, never_faster_than_one_micro_batch_alone, ()) {
  const PipelineShape shape = any_shape();
  RC_PRE(!has_pairs(shape));
  const PipelineTestTimes times = any_times(shape);
  const Ticks hops = shape.chunks * sum(times.transfer) - times.transfer.back();
  const Ticks way = sum(times.forward) + sum(times.backward) + 2 * hops;
  RC_ASSERT(makespan(shape, times) >= way + (times.weight.empty() ? 0 : times.weight[0]));
  if (shape.micro_batches == 1 && times.weight.empty()) { RC_ASSERT(makespan(shape, times) == way); }
}

RC_GTEST_PROP(PipelineLaw, a_longer_duration_never_ends_anything_earlier, ()) {
  const PipelineShape shape = any_shape();
  PipelineTestTimes times = any_times(shape);
  PipelineSolver before_solver;
  const PipelineSolution& before = before_solver.solve(shape, times.view());
  auto* const list = *rc::gen::element(&times.forward, &times.backward, &times.transfer, &times.weight, &times.pair);
  RC_PRE(!list->empty());
  (*list)[*rc::gen::inRange<std::size_t>(0, list->size())] += *rc::gen::inRange<Ticks>(0, 2000);
  PipelineSolver after_solver;
  const PipelineSolution& after = after_solver.solve(shape, times.view());
  for (std::size_t i = 0; i < before.stage_end.size(); ++i) { RC_ASSERT(after.stage_end[i] >= before.stage_end[i]); }
  for (std::size_t i = 0; i < before.last_backward_start.size(); ++i) {
    RC_ASSERT(after.last_backward_start[i] >= before.last_backward_start[i]);
  }
}

RC_GTEST_PROP(PipelineLaw, another_micro_batch_never_helps, ()) {
  PipelineShape shape = any_shape();
  const PipelineTestTimes times = any_times(shape);
  RC_PRE(!has_pairs(shape));                                        // forwards and backwards form other pairs
  RC_PRE(shape.chunks == 1 || shape.micro_batches > shape.stages);  // m = p has a different order
  const Ticks before = makespan(shape, times);
  shape.micro_batches += shape.chunks > 1 ? shape.stages : 1;
  RC_ASSERT(makespan(shape, times) >= before);
}

// The system is homogeneous: results scale with the unit of time.
RC_GTEST_PROP(PipelineLaw, durations_times_k_take_k_times_as_long, ()) {
  const PipelineShape shape = any_shape();
  PipelineTestTimes times = any_times(shape);
  const Ticks before = makespan(shape, times);
  const auto k = *rc::gen::inRange<Ticks>(0, 1'000'000);
  for (auto* list : {&times.forward, &times.backward, &times.transfer, &times.weight, &times.pair}) {
    for (Ticks& ticks : *list) { ticks *= k; }
  }
  RC_ASSERT(makespan(shape, times) == k * before);
}

TEST(PipelineLaw, inputs_without_a_meaning_break_the_contract) {
  const PipelineShape shape{ScheduleKind::interleaved, 4, 2, 8};
  PipelineTestTimes times = equal_times(shape, 1, 1, 1);
  PipelineSolver solver;
  EXPECT_THROW((void)solver.solve({ScheduleKind::interleaved, 4, 2, 7}, times.view()), InternalError);
  times.transfer.back() = -1;
  EXPECT_THROW((void)solver.solve(shape, times.view()), InternalError);
  times.transfer.pop_back();
  EXPECT_THROW((void)solver.solve(shape, times.view()), InternalError);
  EXPECT_EQ(solver.solve({ScheduleKind::one_f_one_b, 4, 1, 1}, times.view()).makespan, 4 + 4 + 6);
}

}  // namespace
}  // namespace orrery::parallel::pipeline_law_test
