// The solver of 1F1B, interleaved and ZB-H1 schedules: all stages together, one step of the wavefront after another.
//
// Let F(i, k), B(i, k) be the end of the k-th forward and backward of stage i (k counts tasks of the stage, 0 .. N - 1,
// N = m v). Megatron's orders give every stage the same k-th forward (and the same k-th backward), so that
//   F(i, k) needs F(i - 1, k);  F(0, k) needs F(p - 1, k - p) unless it is of chunk 0
//   B(i, k) needs B(i + 1, k);  B(p - 1, k) needs B(0, k - p) unless it is of chunk v - 1 (then its own forward, which
//                               the stage has run before)
// and stage i runs backward r after forward r + w(i), where w(i) = p - i - 1 (1F1B) or 2 (p - i - 1) + (v - 1) p
// (interleaved; + p more when m = p, which puts all forwards first). Warm-up and cool-down are the same rule with the
// tasks outside 0 .. N - 1 left out.
//
// ZB-H1 is 1F1B with weight tasks, which wait for nobody and only keep their stage busy: W(i, k) runs right after
// B(i, k + i).
//
// Step s:   1F1B         every stage runs F(i, s + w(i)), B(i, s)
//           ZB-H1        every stage runs F(i, s + w(i)), B(i, s), W(i, s - i); min(i, N) weight tasks follow the end
//           interleaved  every stage runs F(i, s + i + w(i)), B(i, s + i)          (skewed by one step per stage)
// In every case the forward is number s + w(0) - i, and everything a task needs comes from its own stage or from the
// step before, except that a 1F1B or ZB-H1 backward needs the backward of the stage after it in the same step (stages
// are walked last to first). So the state between steps is, of each stage, F of its latest forward and the end of its
// latest task (a backward, or a weight task): 2 p numbers x, whatever m and v are.
//
// Why skipping is exact. A step that every stage takes in full is x' = A x in max-plus algebra ((A x)_j = max over l of
// A_jl + x_l); the A of the interleaved schedule repeats every L = p v steps, as the chunks do, that of 1F1B every L
// = 1. Let M be the product of the As of d steps, d a multiple of L. Max-plus maps are homogeneous: M (x + c) = M x + c
// when c is added to every entry. If x(s + d) = M x(s) equals x(s) + c, then x(s + 2 d) = M (x(s) + c) = x(s) + 2 c,
// and so on by induction for as long as full steps last; integers make the test an equality. All n whole periods of d
// steps that are left are then replaced by x += n c. The state sought repeats in the end for every A whose stages
// depend on each other both ways (its cyclicity theorem), but after how many steps depends on the durations; until
// then, steps are run.
//
// Complexity: O(p) a step; N + w(0) steps at most. Storage: 8 p numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {

template <ScheduleKind Schedule>
class PipelineWave {
 public:
  PipelineWave(const PipelineShape& shape, const PipelineTimes& times, std::vector<std::int64_t>& scratch);

  // Fills stage_end and last_backward_start, which have their sizes already.
  void run(PipelineSolution& solution);

 private:
  void turn_chunks();
  void set_wraps();
  void full_step();
  void edge_step(PipelineSolution& solution);
  void forward_edge();
  void hold_up_first(std::int64_t stage, std::int64_t number);
  void backward_edge();
  void note_last_backward(PipelineSolution& solution);
  void steady_steps(std::int64_t end);
  [[nodiscard]] bool advanced_evenly() const;
  void save_state();
  void jump(std::int64_t periods);

  static constexpr bool kSkewed = Schedule == ScheduleKind::interleaved;
  static constexpr bool kSplits = Schedule == ScheduleKind::zero_bubble;

  // Far below any time, far enough from overflow to add a transfer to.
  static constexpr Ticks kNever = std::numeric_limits<Ticks>::min() / 2;

  PipelineTimes times_;
  std::int64_t p_;
  std::int64_t v_;
  std::int64_t tasks_;             // N: tasks per stage and direction
  std::int64_t lead_;              // w(0)
  std::int64_t step_;              // s
  Ticks* forward_end_;             // [i + 1]: F of stage i; [0]: what stage 0 waits for
  Ticks* backward_end_;            // [i]: B, or W, of stage i; [p]: what stage p - 1 waits for
  Ticks* saved_;                   // the state at some earlier step: F, then B
  Ticks* hop_;                     // [i]: transfer between stage i - 1 and i; [0] and [p]: between p - 1 and 0
  const Ticks* forward_;           // [i]: duration of the forward of stage i in this step
  const Ticks* backward_;          // [i]: ... of the backward
  Ticks* forward_turn_ = nullptr;  // the storage behind forward_ and backward_ when chunks take turns
  Ticks* backward_turn_ = nullptr;
  // The one stage that changes chunk in this step, and the slot (chunk counted in the order of the direction) it goes
  // to.
  std::int64_t forward_stage_ = 0;
  std::int64_t forward_slot_ = 0;
  std::int64_t backward_stage_ = 0;
  std::int64_t backward_slot_ = 0;
};

}  // namespace orrery::parallel
