#include "orrery/parallel/pipeline_wave.hpp"

#include <utility>

#include "orrery/core/integers.hpp"
#include "orrery/parallel/pipeline_shape.hpp"

namespace orrery::parallel {
namespace {

Ticks* filled(Ticks* begin, std::int64_t count, Ticks value) {
  std::fill_n(begin, count, value);
  return begin;
}

}  // namespace

template <ScheduleKind Schedule>
PipelineWave<Schedule>::PipelineWave(const PipelineShape& shape, const PipelineTimes& times,
                                     std::vector<std::int64_t>& scratch)
    : times_(times), p_(shape.stages), v_(shape.chunks), tasks_(shape.micro_batches * shape.chunks) {
  // Written without the min(): a lead that is too long only makes steps without forwards.
  lead_ = kSkewed ? 2 * (p_ - 1) + (v_ - 1) * p_ : p_ - 1;
  if (kSkewed && shape.micro_batches == p_) { lead_ += p_; }
  step_ = -lead_;

  if (scratch.size() < to_index(8 * p_ + 4)) { scratch.resize(to_index(8 * p_ + 4)); }
  Ticks* free = scratch.data();
  const auto take = [&free](std::int64_t count) { return std::exchange(free, free + count); };
  forward_end_ = filled(take(p_ + 1), p_ + 1, 0);
  backward_end_ = filled(take(p_ + 1), p_ + 1, 0);
  saved_ = take(2 * p_);
  hop_ = take(p_ + 1);
  std::copy_n(times_.transfer.begin(), p_ - 1, hop_ + 1);
  hop_[0] = hop_[p_] = kSkewed ? times_.transfer[to_index(p_ - 1)] : 0;
  forward_end_[0] = backward_end_[p_] = kNever;
  if constexpr (kSkewed) {
    forward_ = forward_turn_ = filled(take(p_), p_, 0);
    backward_ = backward_turn_ = filled(take(p_), p_, 0);
  } else {
    forward_ = times_.forward.data();
    backward_ = times_.backward.data();
  }
}

// Forward number s + w(0) - i is the first of a new slot on the stage where it is a multiple of p, backward number s +
// i likewise. The first step of the forwards is s = -w(0), that of the backwards s = -(p - 1), both at slot 0.
template <ScheduleKind Schedule>
void PipelineWave<Schedule>::turn_chunks() {
  if constexpr (kSkewed) {
    if (step_ > -lead_ && ++forward_stage_ == p_) {
      forward_stage_ = 0;
      if (++forward_slot_ == v_) { forward_slot_ = 0; }
    }
    forward_turn_[forward_stage_] = times_.forward[to_index(forward_stage_ * v_ + forward_slot_)];
    if (step_ < 1 - p_) { return; }
    if (step_ == 1 - p_) {
      backward_stage_ = p_ - 1;
    } else if (--backward_stage_ < 0) {
      backward_stage_ = p_ - 1;
      if (++backward_slot_ == v_) { backward_slot_ = 0; }
    }
    backward_turn_[backward_stage_] = times_.backward[to_index(backward_stage_ * v_ + v_ - 1 - backward_slot_)];
  }
}

// Hands the ends of the step before round the corner. Stage 0 is the first to turn to a forward slot and stage p - 1
// the first to turn to a backward slot, so the current slot is theirs.
template <ScheduleKind Schedule>
void PipelineWave<Schedule>::set_wraps() {
  if constexpr (kSkewed) {
    forward_end_[0] = forward_slot_ == 0 ? kNever : forward_end_[p_];
    backward_end_[p_] = backward_slot_ == 0 ? kNever : backward_end_[0];
  }
}

// Every stage runs a forward and a backward. A stage's latest task before it is a backward, so its end counts.
template <ScheduleKind Schedule>
void PipelineWave<Schedule>::full_step() {
  turn_chunks();
  set_wraps();
  Ticks below = backward_end_[p_];
  for (std::int64_t i = p_ - 1; i >= 0; --i) {
    const Ticks before = backward_end_[i];
    const Ticks forward_end = std::max(before, forward_end_[i] + hop_[i]) + forward_[i];
    const Ticks backward_end = std::max(forward_end, below + hop_[i + 1]) + backward_[i];
    forward_end_[i + 1] = forward_end;
    backward_end_[i] = kSplits ? backward_end + times_.weight[to_index(i)] : backward_end;
    below = kSkewed ? before : backward_end;
  }
  ++step_;
}

// A step of warm-up or cool-down: some stages run only one of the two tasks, or none.
template <ScheduleKind Schedule>
void PipelineWave<Schedule>::edge_step(PipelineSolution& solution) {
  turn_chunks();
  set_wraps();
  forward_edge();
  backward_edge();
  note_last_backward(solution);
  ++step_;
}

template <ScheduleKind Schedule>
void PipelineWave<Schedule>::forward_edge() {
  const std::int64_t first = std::max<std::int64_t>(0, step_ + lead_ - tasks_ + 1);
  for (std::int64_t i = std::min(p_ - 1, step_ + lead_); i >= first; --i) {
    const Ticks free = std::max(forward_end_[i + 1], backward_end_[i]);
    forward_end_[i + 1] = std::max(free, forward_end_[i] + hop_[i]) + forward_[i];
    hold_up_first(i, step_ + lead_ - i);
  }
}

// Micro-batch 0 of chunk c is forward number c p. All of them run in edge steps: the last is number (v - 1) p of stage
// p - 1, in step 1 - p.
template <ScheduleKind Schedule>
void PipelineWave<Schedule>::hold_up_first(std::int64_t stage, std::int64_t number) {
  if (times_.first_forward_end.empty() || number % p_ != 0) { return; }
  const std::int64_t chunk = number / p_;
  if (chunk >= v_) { return; }
  Ticks& end = forward_end_[stage + 1];
  end = std::max(end, times_.first_forward_end[to_index(stage * v_ + chunk)]);
}

template <ScheduleKind Schedule>
void PipelineWave<Schedule>::backward_edge() {
  // Backward of stage i, whose input is there at `ready`.
  const auto run = [this](std::int64_t i, Ticks ready) {
    const Ticks free = std::max(forward_end_[i + 1], backward_end_[i]);
    return std::max(free, ready) + backward_[i];
  };
  if constexpr (kSkewed) {
    const std::int64_t last = std::min(p_ - 1, tasks_ - 1 - step_);
    for (std::int64_t i = std::max<std::int64_t>(0, -step_); i <= last; ++i) {
      backward_end_[i] = run(i, backward_end_[i + 1] + hop_[i + 1]);
    }
  } else if (step_ >= 0) {
    Ticks below = kNever;
    for (std::int64_t i = p_ - 1; i >= 0; --i) {
      below = run(i, below + hop_[i + 1]);
      backward_end_[i] = below;
      if (kSplits && step_ >= i) { backward_end_[i] += times_.weight[to_index(i)]; }
    }
  }
}

// Backward number k of the last p v is its chunk's last where k is the last of a group of p: one stage a step.
template <ScheduleKind Schedule>
void PipelineWave<Schedule>::note_last_backward(PipelineSolution& solution) {
  if constexpr (kSkewed) {
    if (step_ < tasks_ - p_ * v_) { return; }
    const std::int64_t stage = p_ - 1 - step_ % p_;
    const std::int64_t number = step_ + stage;
    if (number >= tasks_) { return; }
    const std::int64_t chunk = (tasks_ - 1 - number) / p_;
    const auto cell = to_index(stage * v_ + chunk);
    solution.last_backward_start[cell] = backward_end_[stage] - backward_[stage];
    if (!times_.last_backward_extra.empty()) { backward_end_[stage] += times_.last_backward_extra[cell]; }
    if (stage > 0) { return; }
    for (std::int64_t i = 0; i < p_; ++i) {
      solution.aligned_reduce_start[to_index(i * v_ + chunk)] = backward_end_[i];
    }
  }
}

template <ScheduleKind Schedule>
void PipelineWave<Schedule>::save_state() {
  std::copy_n(forward_end_ + 1, p_, saved_);
  std::copy_n(backward_end_, p_, saved_ + p_);
}

// Whether every number of the state has grown by the same amount since it was saved.
template <ScheduleKind Schedule>
bool PipelineWave<Schedule>::advanced_evenly() const {
  const Ticks advance = backward_end_[0] - saved_[p_];
  for (std::int64_t i = 0; i < p_; ++i) {
    if (backward_end_[i] - saved_[p_ + i] != advance || forward_end_[i + 1] - saved_[i] != advance) { return false; }
  }
  return true;
}

template <ScheduleKind Schedule>
void PipelineWave<Schedule>::jump(std::int64_t periods) {
  const Ticks advance = periods * (backward_end_[0] - saved_[p_]);
  for (std::int64_t i = 0; i < p_; ++i) {
    forward_end_[i + 1] += advance;
    backward_end_[i] += advance;
  }
}

// Runs full steps up to `end`, skipping whole periods once there are any. Which multiple d of the chunks' period the
// state has is not known beforehand, so each state is compared with one saved earlier, at distances that double
// (R. P. Brent, "An improved Monte Carlo factorization algorithm", 1980): at most about three times the steps of
// transient and period together, and one comparison a step that nearly always ends at its first number.
template <ScheduleKind Schedule>
void PipelineWave<Schedule>::steady_steps(std::int64_t end) {
  const std::int64_t unit = kSkewed ? p_ * v_ : 1;
  std::int64_t distance = 0;  // from the saved state, in units
  std::int64_t limit = 1;
  if (end - step_ > unit) { save_state(); }
  while (end - step_ > unit) {
    for (std::int64_t i = 0; i < unit; ++i) { full_step(); }
    ++distance;
    if (advanced_evenly()) {
      const std::int64_t periods = (end - step_) / (distance * unit);
      jump(periods);
      step_ += periods * distance * unit;
      break;
    }
    if (distance == limit) {
      save_state();
      distance = 0;
      limit *= 2;
    }
  }
  while (step_ < end) { full_step(); }
}

template <ScheduleKind Schedule>
void PipelineWave<Schedule>::run(PipelineSolution& solution) {
  // Step 0 is full in tasks, but stage 0 (in 1F1B every stage) comes to it from a forward. The last stage's first
  // weight task is in step p - 1.
  const std::int64_t first = kSplits ? std::min(tasks_, p_ - 1) : 1;
  while (step_ < std::max<std::int64_t>(first, 1)) { edge_step(solution); }
  // Full until stage 0 runs out of forwards, but not past the first of the backwards to note.
  steady_steps(std::min(tasks_ - lead_, tasks_ - p_ * v_));
  while (step_ < tasks_) { edge_step(solution); }
  for (std::int64_t i = 0; i < p_; ++i) {
    Ticks& end = solution.stage_end[to_index(i)];
    end = backward_end_[i];
    if constexpr (kSplits) {
      end += std::min(i, tasks_) * times_.weight[to_index(i)];
      solution.last_backward_start[to_index(i)] = end - times_.weight[to_index(i)];
    } else if constexpr (!kSkewed) {
      solution.last_backward_start[to_index(i)] = end - backward_[i];
    }
  }
}

template class PipelineWave<ScheduleKind::one_f_one_b>;
template class PipelineWave<ScheduleKind::interleaved>;
template class PipelineWave<ScheduleKind::zero_bubble>;

}  // namespace orrery::parallel
