#include "orrery/parallel/pipeline_walk.hpp"

#include <algorithm>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/parallel/pipeline_shape.hpp"

namespace orrery::parallel {
namespace {

using Kind = PipelineTask::Kind;

}  // namespace

PipelineWalk::PipelineWalk(const PipelineShape& shape, const PipelineTimes& times, PipelineStorage& storage)
    : shape_(shape),
      times_(times),
      storage_(storage),
      p_(shape.stages),
      v_(shape.chunks),
      m_(shape.schedule == ScheduleKind::dualpipe ? shape.micro_batches / 2 : shape.micro_batches) {
  set_storage();
  set_routes();
}

void PipelineWalk::set_storage() {
  const std::int64_t cells = p_ * v_;
  const std::int64_t most = (splits_backward(shape_.schedule) ? 3 : 2) * cells * m_;  // tasks
  const std::int64_t needed = (4 * p_ + 1) + 4 * cells + 2 * cells * m_ + 2 * most;
  if (std::ssize(storage_.numbers) < needed) { storage_.numbers.resize(to_index(needed)); }
  std::int64_t* free = storage_.numbers.data();
  const auto take = [&free](std::int64_t count) { return std::exchange(free, free + count); };
  begin_ = take(p_ + 1);
  next_ = take(p_);
  queue_ = take(p_);
  queued_ = take(p_);
  forward_to_ = take(cells);
  backward_to_ = take(cells);
  forward_hop_ = take(cells);
  backward_hop_ = take(cells);
  forward_ready_ = take(cells * m_);
  backward_ready_ = take(cells * m_);
  start_ = take(most);
  end_ = take(most);
  std::fill_n(queued_, p_, 0);
  std::fill_n(forward_ready_, 2 * cells * m_, kMissing);

  storage_.tasks.clear();
  storage_.tasks.reserve(to_index(most));
  for (std::int64_t i = 0; i < p_; ++i) {
    begin_[i] = next_[i] = std::ssize(storage_.tasks);
    append_stage_order(shape_, i, storage_.tasks);
  }
  begin_[p_] = std::ssize(storage_.tasks);
}

// Chunks are placed on consecutive stages, each in ascending order; under DualPipe each of the two is a whole pipeline,
// the second in descending order.
void PipelineWalk::set_routes() {
  const bool dual = shape_.schedule == ScheduleKind::dualpipe;
  std::fill_n(forward_to_, p_ * v_, kNobody);
  std::fill_n(backward_to_, p_ * v_, kNobody);
  const auto connect = [this](std::int64_t from, std::int64_t to, Ticks hop) {
    forward_to_[from] = to;
    backward_to_[to] = from;
    forward_hop_[from] = backward_hop_[to] = hop;
  };
  for (std::int64_t c = 0; c < v_; ++c) {
    for (std::int64_t i = 0; i + 1 < p_; ++i) {
      const std::int64_t low = i * v_ + c;
      const std::int64_t high = low + v_;
      const bool down = dual && c == 1;
      connect(down ? high : low, down ? low : high, times_.transfer[to_index(i)]);
    }
    if (!dual && c + 1 < v_) { connect((p_ - 1) * v_ + c, c + 1, times_.transfer[to_index(p_ - 1)]); }
  }
  for (std::int64_t cell = 0; cell < p_ * v_; ++cell) {
    if (backward_to_[cell] == kNobody) { std::fill_n(forward_ready_ + cell * m_, m_, 0); }
  }
}

void PipelineWalk::wake(std::int64_t stage) {
  if (queued_[stage] != 0) { return; }
  queued_[stage] = 1;
  const std::int64_t at = queue_head_ + queue_size_++;
  queue_[at < p_ ? at : at - p_] = stage;
}

void PipelineWalk::run() {
  for (std::int64_t i = 0; i < p_; ++i) { wake(i); }
  while (queue_size_ > 0) {
    const std::int64_t stage = queue_[queue_head_];
    if (++queue_head_ == p_) { queue_head_ = 0; }
    --queue_size_;
    queued_[stage] = 0;
    if (!advance(stage)) { continue; }
    wake(stage == 0 ? p_ - 1 : stage - 1);
    wake(stage + 1 == p_ ? 0 : stage + 1);
  }
  for (std::int64_t i = 0; i < p_; ++i) { ORRERY_ASSERT(next_[i] == begin_[i + 1]); }
}

// The cell of the backward of a pair.
std::int64_t PipelineWalk::backward_cell(const PipelineTask& pair, std::int64_t cell) {
  return cell - pair.chunk + pair.paired_chunk;
}

PipelineWalk::Input PipelineWalk::input(const PipelineTask& task, std::int64_t cell) const {
  const std::int64_t place = cell * m_ + task.micro_batch;
  switch (task.kind) {
    case Kind::forward: return {forward_ready_[place], times_.forward[to_index(cell)]};
    case Kind::backward: {
      const bool whole = splits_backward(shape_.schedule) && !task.splits;
      return {backward_ready_[place], times_.backward[to_index(cell)] + (whole ? times_.weight[to_index(cell)] : 0)};
    }
    case Kind::weight:  // its backward has run on this stage
      return {0, times_.weight[to_index(cell)]};
    case Kind::pair: {
      const Ticks other = backward_ready_[backward_cell(task, cell) * m_ + task.paired_micro_batch];
      const std::size_t pair = pair_place(shape_, cell / v_, task.chunk, task.paired_chunk);
      return {std::max(forward_ready_[place], other), times_.pair[pair]};
    }
  }
  ORRERY_ASSERT(false);
}

// See PipelineTimes::last_backward_extra.
Ticks PipelineWalk::extra(const PipelineTask& task, std::int64_t cell) const {
  if (times_.last_backward_extra.empty()) { return 0; }
  const bool completes = task.kind == (splits_backward(shape_.schedule) ? Kind::weight : Kind::backward);
  const bool is_last = task.micro_batch == (shape_.schedule == ScheduleKind::gpipe ? 0 : m_ - 1);
  return completes && is_last ? times_.last_backward_extra[to_index(cell)] : 0;
}

// Runs the stage's tasks up to one whose input has not arrived. Returns whether any ran.
bool PipelineWalk::advance(std::int64_t stage) {
  const std::int64_t from = next_[stage];
  std::int64_t t = from;
  Ticks free = t == begin_[stage] ? 0 : end_[t - 1];
  for (; t < begin_[stage + 1]; ++t) {
    const PipelineTask& task = storage_.tasks[to_index(t)];
    const std::int64_t cell = stage * v_ + task.chunk;
    const Input in = input(task, cell);
    if (in.ready == kMissing) { break; }
    start_[t] = std::max(free, in.ready);
    free = start_[t] + in.duration + extra(task, cell);
    const bool forward = task.kind == Kind::forward || task.kind == Kind::pair;
    if (forward && task.micro_batch == 0 && !times_.first_forward_end.empty()) {
      free = std::max(free, times_.first_forward_end[to_index(cell)]);
    }
    end_[t] = free;
    if (forward) { finish_forward(cell, task.micro_batch, free); }
    if (task.kind == Kind::backward) { finish_backward(cell, task.micro_batch, free); }
    if (task.kind == Kind::pair) { finish_backward(backward_cell(task, cell), task.paired_micro_batch, free); }
  }
  next_[stage] = t;
  return t > from;
}

void PipelineWalk::finish_forward(std::int64_t cell, std::int64_t micro_batch, Ticks end) {
  const std::int64_t to = forward_to_[cell];
  if (to == kNobody) {
    backward_ready_[cell * m_ + micro_batch] = end;
  } else {
    forward_ready_[to * m_ + micro_batch] = end + forward_hop_[cell];
  }
}

void PipelineWalk::finish_backward(std::int64_t cell, std::int64_t micro_batch, Ticks end) {
  const std::int64_t to = backward_to_[cell];
  if (to != kNobody) { backward_ready_[to * m_ + micro_batch] = end + backward_hop_[cell]; }
}

void PipelineWalk::read(PipelineSolution& solution) const {
  const bool splits = splits_backward(shape_.schedule);
  for (std::int64_t i = 0; i < p_; ++i) {
    solution.stage_end[to_index(i)] = end_[begin_[i + 1] - 1];
    for (std::int64_t c = 0; c < v_; ++c) {
      const std::int64_t cell = i * v_ + c;
      std::int64_t t = begin_[i + 1] - 1;  // the last task that completes gradients of c; not a pair
      const auto completes = [&](const PipelineTask& task) {
        return task.chunk == c && (task.kind == Kind::weight || (task.kind == Kind::backward && !task.splits));
      };
      while (!completes(storage_.tasks[to_index(t)])) { --t; }
      const bool whole = splits && storage_.tasks[to_index(t)].kind == Kind::backward;
      solution.last_backward_start[to_index(cell)] = whole ? end_[t] - times_.weight[to_index(cell)] : start_[t];
      if (!solution.aligned_reduce_start.empty()) {  // interleaved: only backwards follow
        solution.aligned_reduce_start[to_index(cell)] = end_[std::min(t + i, begin_[i + 1] - 1)];
      }
    }
  }
}

std::span<const PipelineTask> PipelineWalk::tasks(std::int64_t stage) const {
  return std::span(storage_.tasks).subspan(to_index(begin_[stage]), to_index(begin_[stage + 1] - begin_[stage]));
}

std::span<const Ticks> PipelineWalk::starts(std::int64_t stage) const {
  return {start_ + begin_[stage], to_index(begin_[stage + 1] - begin_[stage])};
}

std::span<const Ticks> PipelineWalk::ends(std::int64_t stage) const {
  return {end_ + begin_[stage], to_index(begin_[stage + 1] - begin_[stage])};
}

}  // namespace orrery::parallel
