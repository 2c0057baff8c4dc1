#include "orrery/parallel/pair_steps.hpp"

#include <algorithm>

#include "orrery/parallel/calls.hpp"
#include "orrery/parallel/pair_order.hpp"

namespace orrery::parallel {

namespace {

using StepKind = PairStep::Kind;

bool has_effect(const PairStep& step) {
  return step.waits() || step.blocks_overlapped || step.awaits_block || step.time > Seconds(0) ||
         step.kind == StepKind::call || !step.gather.empty() || !step.reduce.empty();
}

void close_stride(HalfSteps& half) {
  half.ends_with_kernel = false;
  if (half.strides.back().steps > 0) { half.strides.push_back({half.strides.back().end, 0}); }
}

// A step that waits begins a stride, and a call that blocks its half ends one, as does an execution of a block.
void append(HalfSteps& half, const PairStep& step) {
  if (step.waits()) { close_stride(half); }
  PairStride& stride = half.strides.back();
  ++stride.steps;
  if (has_effect(step)) {
    half.steps.push_back(step);
    ++stride.end;
    half.ends_with_kernel = step.kind == StepKind::kernel;
  }
  if (step.kind == StepKind::call && !step.asynchronous) { close_stride(half); }
}

// A kernel that waits for no call joins the one before.
void append_kernel(HalfSteps& half, Seconds time) {
  PairStride& stride = half.strides.back();
  ++stride.steps;
  if (half.ends_with_kernel) {
    half.steps.back().time += time;
    return;
  }
  PairStep& step = half.steps.emplace_back();
  step.kind = StepKind::kernel;
  step.time = time;
  ++stride.end;
  half.ends_with_kernel = true;
}

}  // namespace

HalfSteps PairSteps::of(std::span<const SegmentRun> runs) {
  HalfSteps half;
  half.strides.emplace_back();
  for (const auto& [segment, waits_for_overlapped] : runs) {
    PairStep begin{.kind = StepKind::begin}, end{.kind = StepKind::end};
    if (!segment->empty()) { begin.gather = calls_of(segment->front().gather); }
    append(half, begin);
    for (std::size_t use = 0; use < segment->size(); ++use) {
      for (std::int64_t done = 0; done < (*segment)[use].repeat; ++done) {
        append_execution(*segment, use, done, half);
      }
    }
    end.awaits_overlapped = waits_for_overlapped;
    append(half, end);
  }
  if (half.strides.back().steps == 0) { half.strides.pop_back(); }
  return half;
}

void PairSteps::append_execution(const Segment& segment, std::size_t use, std::int64_t done, HalfSteps& half) {
  const BlockUse& one = segment[use];
  const bool blocks = one.is_blocking_gather;
  const OverlappedCalls next = calls_of(next_gather(segment, use, done));
  PairStep begin{.kind = StepKind::begin}, end{.kind = StepKind::end};
  begin.awaits_gather = one.gather.has_value();
  begin.awaits_overlapped = end.blocks_overlapped = blocks;
  begin.time = program_.block(one.work).launch;
  (blocks ? end : begin).gather = next;
  end.reduce = calls_of(one.reduce);
  append(half, begin);
  const bool has_asynchronous = append_items(one.work, half);
  end.awaits_block = has_asynchronous || begin.time > Seconds(0);
  append(half, end);
  close_stride(half);
}

// Whether a call is asynchronous.
bool PairSteps::append_items(BlockId id, HalfSteps& half) {
  const auto& items = program_.block(id).items;
  const std::vector<Seconds>& times = times_.of(id);
  half.most_items = std::max(half.most_items, static_cast<std::uint32_t>(items.size()));
  bool has_asynchronous = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool is_kernel = items[i].kernel() != nullptr;
    const auto awaited = items[i].waits_for();
    const bool waits = awaited && times[(*awaited).index()] > Seconds(0);
    if (is_kernel) { half.kernels += times[i]; }
    if (is_kernel && !waits) {
      append_kernel(half, times[i]);
      continue;
    }
    PairStep step;
    step.number = static_cast<std::uint32_t>(i);
    step.time = times[i];
    step.awaits_call = waits;
    if (waits) { step.awaited = static_cast<std::uint32_t>((*awaited).index()); }
    if (is_kernel) { step.kind = StepKind::kernel; }
    if (const auto* collective = items[i].collective(); collective != nullptr && times[i] > Seconds(0)) {
      step.kind = StepKind::call;
      step.asynchronous = collective->asynchronous;
      step.occupies_compute = occupies_compute(program_, *collective);
      step.on_host_link = route_of(collective->call, program_.mesh) == Route::host;
      has_asynchronous = has_asynchronous || step.asynchronous;
    }
    append(half, step);
  }
  return has_asynchronous;
}

OverlappedCalls PairSteps::calls_of(OptionalBlockId id) {
  if (!id) { return {}; }
  known_.resize(program_.blocks.size());
  OverlappedCalls& range = known_[(*id).index()];
  if (!range.empty()) { return range; }
  range.begin = range.end = static_cast<std::uint32_t>(calls_.size());
  const auto& items = program_.block(*id).items;
  const std::vector<Seconds>& times = times_.of(*id);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!(times[i] > Seconds(0))) { continue; }
    calls_.push_back({times[i], route_of(items[i].collective()->call, program_.mesh) == Route::host});
    ++range.end;
  }
  return range;
}

}  // namespace orrery::parallel
