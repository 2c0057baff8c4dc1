#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_test_cases.hpp"

namespace orrery::parallel::pipeline_order_test {
namespace {

// "F0.2 B1.0": forward of chunk 0, micro-batch 2; backward of chunk 1, micro-batch 0. "F0.2+B1.0": a pair.
std::string text(const std::vector<PipelineTask>& order) {
  std::string out;
  for (const PipelineTask& task : order) {
    if (!out.empty()) { out += ' '; }
    out += task.kind == PipelineTask::Kind::backward ? 'B' : 'F';
    out += std::to_string(task.chunk) + '.' + std::to_string(task.micro_batch);
    if (task.kind != PipelineTask::Kind::pair) { continue; }
    out += "+B" + std::to_string(task.paired_chunk) + '.' + std::to_string(task.paired_micro_batch);
  }
  return out;
}

// Calls body(shape) for every shape with p <= 6, v <= 4, m <= 24 that has an order and whose backward is one task.
template <class Body>
void for_every_small_shape(Body body) {
  for (const auto schedule : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    for (std::int64_t p = 1; p <= 6; ++p) {
      for (std::int64_t v = 1; v <= (schedule == ScheduleKind::interleaved ? 4 : 1); ++v) {
        for (std::int64_t m = 1; m <= 24; ++m) {
          if (v > 1 && m % p != 0) { continue; }
          const PipelineShape shape{schedule, p, v, m};
          body(shape);
          if (with_pairs(shape).pairs) { body(with_pairs(shape)); }
        }
      }
    }
  }
}

TEST(PipelineOrder, gpipe_runs_all_forwards_then_all_backwards_last_first) {
  EXPECT_EQ(text(stage_order({ScheduleKind::gpipe, 4, 1, 3}, 1)), "F0.0 F0.1 F0.2 B0.2 B0.1 B0.0");
}

// Warm-up p - i - 1 = 2 on the second of four stages; none on the last.
TEST(PipelineOrder, one_f_one_b_alternates_after_p_minus_i_minus_1_forwards) {
  const PipelineShape shape{ScheduleKind::one_f_one_b, 4, 1, 4};
  EXPECT_EQ(text(stage_order(shape, 1)), "F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3");
  EXPECT_EQ(text(stage_order(shape, 3)), "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3");
}

// p = 2, v = 2, m = 4. Stage 0 warms up with 2 (2 - 0 - 1) + (2 - 1) 2 = 4 forwards, stage 1 with 2. Forwards go chunk
// 0 twice, chunk 1 twice, on to the next two micro-batches; backwards the same with chunk 1 first.
TEST(PipelineOrder, interleaved_follows_megatron) {
  const PipelineShape shape{ScheduleKind::interleaved, 2, 2, 4};
  EXPECT_EQ(text(stage_order(shape, 0)),
            "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
  EXPECT_EQ(text(stage_order(shape, 1)),
            "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
}

// One more forward before the first pair than without: 5 and 3. Without pipeline it is one.
TEST(PipelineOrder, with_pairs_forwards_and_backwards_that_alternate_run_together) {
  const PipelineShape shape = with_pairs({ScheduleKind::interleaved, 2, 2, 4});
  EXPECT_EQ(text(stage_order(shape, 0)),
            "F0.0 F0.1 F1.0 F1.1 F0.2 F0.3+B1.0 F1.2+B1.1 F1.3+B0.0 B0.1 B1.2 B1.3 B0.2 B0.3");
  EXPECT_EQ(text(stage_order(shape, 1)),
            "F0.0 F0.1 F1.0 F1.1+B1.0 F0.2+B1.1 F0.3+B0.0 F1.2+B0.1 F1.3+B1.2 B1.3 B0.2 B0.3");
  EXPECT_EQ(text(stage_order(with_pairs({ScheduleKind::one_f_one_b, 1, 1, 3}), 0)), "F0.0 F0.1+B0.0 F0.2+B0.1 B0.2");
  using Chunks = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(paired_chunks(shape, 0), (Chunks{{0, 1}, {1, 1}, {1, 0}}));
  EXPECT_EQ(paired_chunks(shape, 1), (Chunks{{1, 1}, {0, 1}, {0, 0}, {1, 0}}));
}

TEST(PipelineOrder, the_first_forward_and_the_last_backward_of_a_chunk_are_in_no_pair) {
  for_every_small_shape([](const PipelineShape& shape) {
    for (std::int64_t i = 0; i < shape.stages; ++i) {
      for (const PipelineTask& task : stage_order(shape, i)) {
        if (task.kind != PipelineTask::Kind::pair) { continue; }
        ASSERT_GT(task.micro_batch, 0);
        ASSERT_LT(task.paired_micro_batch, shape.micro_batches - 1);
        const auto chunks = paired_chunks(shape, i);
        const std::pair combination{static_cast<std::size_t>(task.chunk), static_cast<std::size_t>(task.paired_chunk)};
        ASSERT_EQ(std::count(chunks.begin(), chunks.end(), combination), 1);
      }
    }
  });
}

TEST(PipelineOrder, interleaved_with_as_many_micro_batches_as_stages_runs_all_forwards_first) {
  EXPECT_EQ(text(stage_order({ScheduleKind::interleaved, 2, 2, 2}, 1)), "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1");
}

TEST(PipelineOrder, interleaved_with_one_chunk_is_one_f_one_b) {
  for (std::int64_t m = 1; m <= 9; ++m) {
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(stage_order({ScheduleKind::interleaved, 4, 1, m}, i),
                stage_order({ScheduleKind::one_f_one_b, 4, 1, m}, i));
    }
  }
}

TEST(PipelineOrder, every_task_runs_once_and_backward_after_its_forward) {
  for_every_small_shape([](const PipelineShape& shape) {
    for (std::int64_t i = 0; i < shape.stages; ++i) {
      std::set<std::pair<std::int32_t, std::int64_t>> open;
      std::int64_t forwards = 0;
      for (const PipelineTask& task : stage_order(shape, i)) {
        const std::pair key{task.chunk, task.micro_batch};
        ASSERT_TRUE(task.chunk >= 0 && task.chunk < shape.chunks);
        ASSERT_TRUE(task.micro_batch >= 0 && task.micro_batch < shape.micro_batches);
        if (task.kind == PipelineTask::Kind::backward) {
          ASSERT_EQ(open.erase(key), 1U);
          continue;
        }
        if (task.kind == PipelineTask::Kind::pair) {
          ASSERT_EQ(open.erase({task.paired_chunk, task.paired_micro_batch}), 1U);
        }
        ASSERT_TRUE(open.insert(key).second);
        ++forwards;
      }
      EXPECT_TRUE(open.empty());
      EXPECT_EQ(forwards, shape.micro_batches * shape.chunks);
    }
  });
}

TEST(PipelineOrder, shapes_without_an_order_break_the_contract) {
  EXPECT_THROW((void)stage_order({ScheduleKind::interleaved, 4, 2, 6}, 0), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::one_f_one_b, 4, 2, 8}, 0), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::one_f_one_b, 4, 1, 8}, 4), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::gpipe, 0, 1, 8}, 0), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::gpipe, 1, 1, 0}, 0), InternalError);
}

double stepped_peak(const PipelineShape& shape, std::int64_t stage, const std::vector<double>& weight,
                    const std::vector<double>& replayed) {
  double load = 0.0;
  double peak = 0.0;
  for (const PipelineTask& task : stage_order(shape, stage)) {
    const auto chunk = static_cast<std::size_t>(task.chunk);
    const bool pair = task.kind == PipelineTask::Kind::pair;  // frees as much as it adds
    const auto leaving = pair ? static_cast<std::size_t>(task.paired_chunk) : chunk;
    if (task.kind != PipelineTask::Kind::forward) {
      peak = std::max(peak, load + replayed[leaving]);
      load -= weight[leaving];
    }
    if (task.kind != PipelineTask::Kind::backward) { load += weight[chunk]; }
    peak = std::max(peak, load);
  }
  return peak;
}

// Integer weights, so that sums are exact in any order. The largest chunk is first, last, in the middle, or all are
// equal.
TEST(PipelinePeak, equals_stepping_through_the_order) {
  const std::vector<std::vector<double>> weights = {
      {1, 1, 1, 1}, {9, 1, 1, 2}, {1, 2, 3, 50}, {0, 7, 0, 3}, {0, 0, 0, 0}};
  for_every_small_shape([&weights](const PipelineShape& shape) {
    for (std::int64_t i = 0; i < shape.stages; ++i) {
      for (const auto& weight : weights) {
        ASSERT_EQ(peak_in_flight(shape, i, weight), stepped_peak(shape, i, weight, {0, 0, 0, 0}))
            << static_cast<int>(shape.schedule) << " p " << shape.stages << " v " << shape.chunks << " m "
            << shape.micro_batches << " stage " << i;
        for (const auto& replayed : weights) {
          ASSERT_EQ(peak_in_flight(shape, i, weight, replayed), stepped_peak(shape, i, weight, replayed))
              << static_cast<int>(shape.schedule) << " p " << shape.stages << " v " << shape.chunks << " m "
              << shape.micro_batches << " stage " << i;
        }
      }
    }
  });
}

TEST(PipelinePeak, one_f_one_b_holds_one_micro_batch_per_stage_from_here_on) {
  const std::vector<double> weight = {3.0};
  EXPECT_EQ(peak_in_flight({ScheduleKind::one_f_one_b, 4, 1, 100}, 0, weight), 12.0);
  EXPECT_EQ(peak_in_flight({ScheduleKind::one_f_one_b, 4, 1, 100}, 3, weight), 3.0);
  EXPECT_EQ(peak_in_flight({ScheduleKind::one_f_one_b, 4, 1, 2}, 0, weight), 6.0);
  EXPECT_EQ(peak_in_flight({ScheduleKind::gpipe, 4, 1, 100}, 3, weight), 300.0);
}

// Korthikanti et al. 2022 (arXiv:2205.05198), section 4.2.3: interleaving stores 1 + (p - 1) / (p v) times the p
// micro-batches of 1F1B on the first stage. p = 8, v = 4, chunk weight 1 / v: 8 (1 + 7 / 32) = 9.75.
TEST(PipelinePeak, interleaved_first_stage_holds_p_plus_p_minus_1_over_v) {
  const std::vector<double> weight(4, 0.25);
  EXPECT_EQ(peak_in_flight({ScheduleKind::interleaved, 8, 4, 64}, 0, weight), 9.75);
}

}  // namespace
}  // namespace orrery::parallel::pipeline_order_test
