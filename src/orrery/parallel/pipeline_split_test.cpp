// The schedules with separate weight-gradient tasks: ZB-H1 and DualPipe.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_test_cases.hpp"

namespace orrery::parallel::pipeline_split_test {
namespace {

using Kind = PipelineTask::Kind;

// "F0 b0 W0 B1": forward, backward of inputs only, weight task, whole backward; "0F3+1B2": a pair. DualPipe's tasks
// start with their chunk.
std::string text(const PipelineShape& shape, std::int64_t stage) {
  const bool chunks = shape.chunks > 1;
  std::string out;
  for (const PipelineTask& task : stage_order(shape, stage)) {
    if (!out.empty()) { out += ' '; }
    if (chunks) { out += std::to_string(task.chunk); }
    switch (task.kind) {
      case Kind::forward:
      case Kind::pair: out += 'F'; break;
      case Kind::backward: out += task.splits ? 'b' : 'B'; break;
      case Kind::weight: out += 'W'; break;
    }
    out += std::to_string(task.micro_batch);
    if (task.kind == Kind::pair) {
      out += '+' + std::to_string(task.paired_chunk) + 'B' + std::to_string(task.paired_micro_batch);
    }
  }
  return out;
}

std::vector<PipelineShape> small_shapes() {
  std::vector<PipelineShape> shapes;
  for (std::int64_t p = 1; p <= 6; ++p) {
    for (std::int64_t m = 1; m <= 20; ++m) { shapes.push_back({ScheduleKind::zero_bubble, p, 1, m}); }
  }
  for (std::int64_t p = 2; p <= 12; p += 2) {
    for (std::int64_t m = 2 * p; m <= 2 * p + 8; m += 2) { shapes.push_back({ScheduleKind::dualpipe, p, 2, m}); }
  }
  return shapes;
}

// The order derived by hand: 1F1B with warm-up 4 - 1 - 1 = 2, each W one micro-batch after its b.
TEST(PipelineSplit, zero_bubble_is_one_f_one_b_with_weights_stage_micro_batches_late) {
  const PipelineShape shape{ScheduleKind::zero_bubble, 4, 1, 5};
  EXPECT_EQ(text(shape, 0), "F0 F1 F2 F3 b0 W0 F4 b1 W1 b2 W2 b3 W3 b4 W4");
  EXPECT_EQ(text(shape, 1), "F0 F1 F2 b0 F3 b1 W0 F4 b2 W1 b3 W2 b4 W3 W4");
  EXPECT_EQ(text(shape, 3), "F0 b0 F1 b1 F2 b2 F3 b3 W0 F4 b4 W1 W2 W3 W4");
}

TEST(PipelineSplit, zero_bubble_with_fewer_micro_batches_than_stages_ends_in_weights) {
  EXPECT_EQ(text({ScheduleKind::zero_bubble, 4, 1, 2}, 3), "F0 b0 F1 b1 W0 W1");
  EXPECT_EQ(text({ScheduleKind::zero_bubble, 4, 1, 2}, 0), "F0 F1 b0 W0 b1 W1");
}

// p = 4, m = 8: h = 2. Stage 0 (r = 0): 2 (h - r - 1) = 2 forwards; F F once; b W F once; 8 / 2 - 4 + 0 + 1 = 1 round
// of two pairs; B and a pair once; B, b; W, b once; W. Stage 1 (r = 1) is next to the middle: no 1, 3, 5, 7; two rounds
// of pairs, the first of four apart; B B, then b b; W W. Stages 2 and 3 mirror them.
TEST(PipelineSplit, dualpipe_runs_its_eight_steps) {
  const PipelineShape shape{ScheduleKind::dualpipe, 4, 2, 8};
  EXPECT_EQ(text(shape, 0), "0F0 0F1 0F2 1F0 1b0 1W0 1F1 0F3+1B1 1F2+0B0 1B2 1F3+0B1 1B3 0b2 0W2 0b3 0W3");
  EXPECT_EQ(text(shape, 1), "0F0 1F0 0F1 1F1 0F2 1B0 1F2+0B0 0F3+1B1 1F3+0B1 1B2 0B2 1b3 0b3 1W3 0W3");
  EXPECT_EQ(text(shape, 2), "1F0 0F0 1F1 0F1 1F2 0B0 0F2+1B0 1F3+0B1 0F3+1B1 0B2 1B2 0b3 1b3 0W3 1W3");
}

// What has been done for a micro-batch of a chunk on a stage: forward, backward, weight gradient.
struct Done {
  bool forward = false, backward = false, weights = false;
};

class Ledger {
 public:
  void run(const PipelineTask& task) {
    switch (task.kind) {
      case Kind::forward: return forward(task.chunk, task.micro_batch);
      case Kind::backward: return backward(task.chunk, task.micro_batch, !task.splits);
      case Kind::weight: return weights(task.chunk, task.micro_batch);
      case Kind::pair:
        forward(task.chunk, task.micro_batch);
        return backward(task.paired_chunk, task.paired_micro_batch, true);
    }
  }
  [[nodiscard]] bool complete(std::int64_t chunks, std::int64_t micro_batches) const {
    return std::ssize(done_) == chunks * micro_batches &&
           std::ranges::all_of(done_, [](const auto& entry) { return entry.second.weights; });
  }

 private:
  void forward(std::int64_t chunk, std::int64_t k) {
    EXPECT_EQ(k, next_forward_[chunk]++);
    EXPECT_FALSE(std::exchange(done_[{chunk, k}].forward, true));
  }
  void backward(std::int64_t chunk, std::int64_t k, bool whole) {
    EXPECT_EQ(k, next_backward_[chunk]++);
    EXPECT_TRUE((done_[{chunk, k}].forward));
    EXPECT_FALSE(std::exchange(done_[{chunk, k}].backward, true));
    if (whole) { done_[{chunk, k}].weights = true; }
  }
  void weights(std::int64_t chunk, std::int64_t k) {
    EXPECT_TRUE((done_[{chunk, k}].backward));
    EXPECT_FALSE(std::exchange(done_[{chunk, k}].weights, true));
  }

  std::map<std::pair<std::int64_t, std::int64_t>, Done> done_;
  std::map<std::int64_t, std::int64_t> next_forward_, next_backward_;
};

TEST(PipelineSplit, every_micro_batch_goes_forward_backward_and_to_the_weights_once_in_order) {
  for (const PipelineShape& shape : small_shapes()) {
    const std::int64_t each = shape.micro_batches / shape.chunks;  // per chunk
    for (std::int64_t i = 0; i < shape.stages; ++i) {
      Ledger ledger;
      for (const PipelineTask& task : stage_order(shape, i)) { ledger.run(task); }
      EXPECT_TRUE(ledger.complete(shape.chunks, each)) << shape.stages << " " << shape.micro_batches << " " << i;
      ASSERT_FALSE(::testing::Test::HasFailure());
    }
  }
}

// Reversing the order of the stages only swaps the names of the chunks.
TEST(PipelineSplit, dualpipe_is_its_own_mirror_image) {
  for (const PipelineShape& shape : small_shapes()) {
    if (shape.schedule != ScheduleKind::dualpipe) { continue; }
    for (std::int64_t i = 0; i < shape.stages; ++i) {
      auto mirrored = stage_order(shape, shape.stages - 1 - i);
      for (PipelineTask& task : mirrored) {
        task.chunk = 1 - task.chunk;
        if (task.kind == Kind::pair) { task.paired_chunk = 1 - task.paired_chunk; }
      }
      EXPECT_EQ(stage_order(shape, i), mirrored);
    }
  }
}

TEST(PipelineSplit, shapes_without_an_order_break_the_contract) {
  EXPECT_THROW((void)stage_order({ScheduleKind::zero_bubble, 4, 2, 8}, 0), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::dualpipe, 4, 1, 8}, 0), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::dualpipe, 3, 2, 8}, 0), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::dualpipe, 4, 2, 6}, 0), InternalError);
  EXPECT_THROW((void)stage_order({ScheduleKind::dualpipe, 4, 2, 9}, 0), InternalError);
}

TEST(PipelineSplit, durations_that_the_schedule_does_not_have_break_the_contract) {
  const PipelineShape split{ScheduleKind::zero_bubble, 2, 1, 4};
  PipelineTestTimes times = equal_times(split, 1, 1, 0, 1);
  EXPECT_EQ(PipelineSolver().solve(split, times.view()).makespan, 4 * 3 + 1);
  EXPECT_THROW((void)PipelineSolver().solve({ScheduleKind::one_f_one_b, 2, 1, 4}, times.view()), InternalError);
  times.weight.pop_back();
  EXPECT_THROW((void)PipelineSolver().solve(split, times.view()), InternalError);
  const PipelineShape dual{ScheduleKind::dualpipe, 2, 2, 4};
  times = equal_times(dual, 1, 1, 0, 1);
  times.pair.back() = -1;
  EXPECT_THROW((void)timeline(dual, times.view()), InternalError);
}

// The bubble of a schedule is its time minus the work of m micro-batches. arXiv:2401.10241, table 2. Valid for m >= p
// (the warm-up fits), T_W <= T_F (else a weight task delays the next forward) and T_W <= T_B (else the weight tasks
// between the last backwards delay them); for all durations up to 6, verified to hold only then.
TEST(PipelineSplit, zero_bubble_bubble_is_p_minus_1_times_f_plus_b_minus_w) {
  for (std::int64_t p = 1; p <= 9; ++p) {
    for (const std::int64_t m : {p, p + 1, 2 * p, 3 * p + 1, 60 * p}) {
      for (const auto& [f, b, w] : {std::array<Ticks, 3>{100, 100, 100}, {100, 130, 70}, {100, 100, 0}, {90, 80, 80}}) {
        const PipelineShape shape{ScheduleKind::zero_bubble, p, 1, m};
        const Ticks makespan = PipelineSolver().solve(shape, equal_times(shape, f, b, 0, w).view()).makespan;
        EXPECT_EQ(makespan - m * (f + b + w), (p - 1) * (f + b - w)) << p << " " << m << " " << w;
      }
    }
  }
}

// p = 2, m = 2, f = b = 1, w = 2 > f. Stage 0: F0 0-1, F1 1-2, b0 3-4 (stage 1: F0 1-2, b0 2-3, F1 3-4, b1 4-5), W0
// 4-6, b1 6-7, W1 7-9: bubble 9 - 2 * 4 = 1, where (p - 1) (f + b - w) would be 0.
TEST(PipelineSplit, zero_bubble_with_long_weight_tasks_has_a_larger_bubble) {
  const PipelineShape shape{ScheduleKind::zero_bubble, 2, 1, 2};
  EXPECT_EQ(PipelineSolver().solve(shape, equal_times(shape, 1, 1, 0, 2).view()).makespan, 9);
}

// arXiv:2401.10241: T_F, T_B, T_W and T_comm from table 9 (appendix), bubble rates of 1F1B and ZB-H1
// that its authors calculated from them in table 5. The rate is (cost - m (T_F + T_B + T_W)) / cost, section 5.3.
struct PublishedRate {
  std::int64_t p, m;
  Ticks forward, backward, weight, transfer;  // microseconds
  double one_f_one_b, zero_bubble;
};

constexpr PublishedRate kPublishedRates[] = {
    {8, 24, 18522, 18086, 9337, 601, 0.2431, 0.1585},   {8, 32, 18513, 18086, 9331, 626, 0.1985, 0.1242},
    {8, 64, 18546, 18097, 9321, 762, 0.1240, 0.0674},   {8, 24, 29718, 29444, 19927, 527, 0.2347, 0.1323},
    {8, 32, 29802, 29428, 19530, 577, 0.1898, 0.1045},  {8, 64, 29935, 29621, 19388, 535, 0.1091, 0.0554},
    {16, 48, 11347, 11248, 8132, 377, 0.2552, 0.1397},  {16, 64, 11307, 11254, 8101, 379, 0.2082, 0.1088},
    {16, 128, 11325, 11308, 8109, 378, 0.1251, 0.0576}, {32, 96, 10419, 10207, 7715, 408, 0.2646, 0.1421},
    {32, 128, 10408, 10204, 7703, 408, 0.2168, 0.1106}, {32, 256, 10402, 10248, 7698, 460, 0.1352, 0.0594},
};

TEST(PipelineSplit, published_bubble_rates_come_out_to_every_digit) {
  for (const PublishedRate& row : kPublishedRates) {
    const Ticks f = row.forward, b = row.backward, w = row.weight, t = row.transfer;
    const auto rate = [&](ScheduleKind schedule) {
      const PipelineShape shape{schedule, row.p, 1, row.m};
      const bool splits = splits_backward(schedule);
      const PipelineTestTimes times = equal_times(shape, f, splits ? b : b + w, t, splits ? w : 0);
      const auto cost = static_cast<double>(PipelineSolver().solve(shape, times.view()).makespan);
      return 1.0 - static_cast<double>(row.m * (f + b + w)) / cost;
    };
    EXPECT_NEAR(rate(ScheduleKind::one_f_one_b), row.one_f_one_b, 0.00005) << row.p << " " << row.m;
    EXPECT_NEAR(rate(ScheduleKind::zero_bubble), row.zero_bubble, 0.00005) << row.p << " " << row.m;
  }
}

Ticks idle(const PipelineShape& shape, const PipelineTestTimes& times, std::int64_t stage) {
  const auto stages = timeline(shape, times.view());
  Ticks end = 0;
  for (const auto& tasks : stages) { end = std::max(end, tasks.back().end); }
  for (const SolvedTask& solved : stages[static_cast<std::size_t>(stage)]) { end -= solved.end - solved.start; }
  return end;
}

// arXiv:2412.19437, table 2: (p / 2 - 1) (F&B + B - 3 W), with B the whole backward, F&B a pair. It is the idle time of
// the middle stages, for T_F = T_B (inputs only) and T_W <= T_F; if a pair takes as long as its parts, all stages have
// the same work and the same idle time.
TEST(PipelineSplit, dualpipe_bubble_is_half_p_minus_1_times_pair_plus_backward_minus_3_weights) {
  for (std::int64_t p = 2; p <= 16; p += 2) {
    for (const std::int64_t m : {2 * p, 2 * p + 2, 5 * p}) {
      for (const Ticks w : {0, 40, 80, 100}) {
        for (const Ticks saved : {Ticks{0}, Ticks{1}, w / 2, Ticks{100}}) {
          const PipelineShape shape{ScheduleKind::dualpipe, p, 2, m};
          PipelineTestTimes times = equal_times(shape, 100, 100, 0, w);
          const Ticks pair = 200 + w - saved;
          std::ranges::fill(times.pair, pair);
          const Ticks expected = (p / 2 - 1) * (pair + 100 + w - 3 * w);
          EXPECT_EQ(idle(shape, times, p / 2 - 1), expected) << p << " " << m << " " << w << " " << saved;
          EXPECT_EQ(idle(shape, times, p / 2), expected);
          if (saved == 0) { EXPECT_EQ(idle(shape, times, 0), expected); }
        }
      }
    }
  }
}

// The largest load in the order: a forward starts before the backward of the same pair ends.
double stepped_peak(const PipelineShape& shape, std::int64_t stage, const std::vector<double>& weight) {
  double load = 0.0;
  double peak = 0.0;
  for (const PipelineTask& task : stage_order(shape, stage)) {
    const auto chunk = static_cast<std::size_t>(task.chunk);
    if (task.kind == Kind::forward || task.kind == Kind::pair) { load += weight[chunk]; }
    peak = std::max(peak, load);
    if (task.kind == Kind::pair) { load -= weight[1 - chunk]; }
    if (task.kind == Kind::weight || (task.kind == Kind::backward && !task.splits)) { load -= weight[chunk]; }
  }
  EXPECT_EQ(load, 0.0);
  return peak;
}

TEST(PipelineSplit, peak_equals_stepping_through_the_order) {
  for (const PipelineShape& shape : small_shapes()) {
    for (const std::vector<double>& weight : {std::vector<double>{1, 1}, {9, 1}, {1, 50}, {0, 3}}) {
      for (std::int64_t i = 0; i < shape.stages; ++i) {
        ASSERT_EQ(peak_in_flight(shape, i, weight), stepped_peak(shape, i, weight))
            << static_cast<int>(shape.schedule) << " p " << shape.stages << " m " << shape.micro_batches << " " << i;
      }
    }
  }
}

// arXiv:2401.10241, table 2: p M_B, as 1F1B on its first stage. arXiv:2412.19437, table 2: p + 1.
TEST(PipelineSplit, peaks_are_those_of_the_papers) {
  const std::vector<double> weight(2, 1.0);
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(peak_in_flight({ScheduleKind::zero_bubble, 8, 1, 64}, i, weight),
              peak_in_flight({ScheduleKind::one_f_one_b, 8, 1, 64}, 0, weight));
    EXPECT_EQ(peak_in_flight({ScheduleKind::dualpipe, 8, 2, 64}, i, weight), 9.0);
  }
}

}  // namespace
}  // namespace orrery::parallel::pipeline_split_test
