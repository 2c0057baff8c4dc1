// Random shapes and durations for tests of pipelines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {

inline constexpr std::array kEverySchedule = {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                              ScheduleKind::zero_bubble, ScheduleKind::dualpipe};

// The durations that a PipelineTimes refers to.
struct PipelineTestTimes {
  std::vector<Ticks> forward, backward;  // [stage * chunks + chunk]
  std::vector<Ticks> transfer;           // [stage that sends activations], always p entries
  std::vector<Ticks> first_forward_end;  // empty, or one per forward
  std::vector<Ticks> weight;             // if the schedule splits
  std::vector<Ticks> pair;               // [pair_place()], if it has pairs
  std::vector<Ticks> last_backward_extra = {};

  [[nodiscard]] PipelineTimes view() const {
    return {forward, backward, transfer, first_forward_end, weight, pair, last_backward_extra};
  }
};

// The nearest shape that has an order: rounds p and m up as the schedule requires, and sets v if it is determined.
inline PipelineShape shape_near(ScheduleKind schedule, std::int64_t p, std::int64_t v, std::int64_t m) {
  if (schedule == ScheduleKind::dualpipe) {
    p += p % 2;
    return {schedule, p, 2, std::max(2 * p, m + m % 2)};
  }
  if (schedule != ScheduleKind::interleaved || v == 1) { return {schedule, p, 1, m}; }
  return {schedule, p, v, (m + p - 1) / p * p};
}

// The same shape with pairs, if it can have them.
inline PipelineShape with_pairs(PipelineShape shape) {
  const bool alternates = shape.schedule == ScheduleKind::interleaved || shape.schedule == ScheduleKind::one_f_one_b;
  shape.pairs = alternates && (shape.stages == 1 || shape.chunks > 1);
  return shape;
}

inline std::size_t cells_of(const PipelineShape& shape) {
  return static_cast<std::size_t>(shape.stages * shape.chunks);
}

inline std::size_t pair_places_of(const PipelineShape& shape) {
  return cells_of(shape) * static_cast<std::size_t>(shape.chunks);
}

// Equal stages. A pair takes as long as its parts.
inline PipelineTestTimes equal_times(const PipelineShape& shape, Ticks forward, Ticks backward, Ticks transfer,
                                     Ticks weight = 0) {
  const std::size_t cells = cells_of(shape);
  PipelineTestTimes times;
  times.forward.assign(cells, forward);
  times.backward.assign(cells, backward);
  times.transfer.assign(static_cast<std::size_t>(shape.stages), transfer);
  if (splits_backward(shape.schedule)) { times.weight.assign(cells, weight); }
  if (has_pairs(shape)) { times.pair.assign(pair_places_of(shape), forward + backward + weight); }
  return times;
}

// draw(most): a random duration below `most`. If `first` is not 0, first forwards have earliest ends.
template <class Draw>
PipelineTestTimes drawn_times(const PipelineShape& shape, Ticks first, Draw draw) {
  const auto list = [&draw](std::size_t count, Ticks most) {
    std::vector<Ticks> drawn(count);
    for (Ticks& ticks : drawn) { ticks = draw(most); }
    return drawn;
  };
  const std::size_t cells = cells_of(shape);
  PipelineTestTimes times{
      list(cells, 1000), list(cells, 1000), list(static_cast<std::size_t>(shape.stages), 300), {}, {}, {}};
  if (first > 0) { times.first_forward_end = list(cells, first); }
  if (splits_backward(shape.schedule)) { times.weight = list(cells, 1000); }
  if (has_pairs(shape)) { times.pair = list(pair_places_of(shape), 2000); }
  return times;
}

}  // namespace orrery::parallel
