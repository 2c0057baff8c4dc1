#include "orrery/parallel/pair_order.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include "orrery/parallel/calls.hpp"

namespace orrery::parallel {

namespace {

struct SegmentRun {
  const Segment* segment = nullptr;
  bool waits_for_overlapped = false;  // at the end
};

// Where a half is in a segment.
struct Place {
  bool has_begun = false, in_block = false;
  std::size_t use = 0, item = 0;
  std::int64_t done = 0;      // executions of the use
  Seconds arrived, launched;  // weights of the next execution; launches of the block
};

// One of the two micro-batches.
struct Half {
  std::vector<SegmentRun> runs;
  std::size_t run = 0;
  Place at = {};
  Seconds ready = {};              // when its next item may start
  Seconds stream = {};             // end of the last collective of its blocks
  std::vector<Seconds> ends = {};  // of the collectives of its block, by item
  Seconds left = {};               // sum of the times of its items that have not started
};

class Pair {
 public:
  Pair(const Program& program, ItemTimes& times) : program_(program), times_(times) {}

  // `alternates`: by list scheduling; otherwise the first half runs as a whole, then the second one.
  PairOrder play(std::array<Half, 2> halves, bool alternates) {
    for (Half& half : halves) { half.left = time_of_items(half); }
    PairOrder order;
    while (!has_ended(halves[0]) || !has_ended(halves[1])) {
      const bool first = alternates ? takes_first(halves[0], halves[1]) : !has_ended(halves[0]);
      const std::uint8_t next = first ? 0 : 1;
      step(halves[next]);
      order.halves.push_back(next);
    }
    order.time = max(halves[0].ready, halves[1].ready);
    return order;
  }

 private:
  Seconds time_of_items(const Half& half) {
    Seconds sum;
    for (const SegmentRun& run : half.runs) {
      for (const BlockUse& use : *run.segment) {
        for (const Seconds time : times_.of(use.work)) { sum += static_cast<double>(use.repeat) * time; }
      }
    }
    return sum;
  }

  // The half whose next step can start first; if both can, the one with more left.
  [[nodiscard]] bool takes_first(const Half& first, const Half& second) {
    if (has_ended(first) || has_ended(second)) { return !has_ended(first); }
    const Seconds one = start(first), other = start(second);
    return one == other ? first.left > second.left : one < other;
  }

  static bool has_ended(const Half& half) { return half.run == half.runs.size(); }

  // When the next step of a half that has not ended can start.
  [[nodiscard]] Seconds start(const Half& half) const {
    const Segment& segment = *half.runs[half.run].segment;
    const Place& at = half.at;
    if (!at.has_begun || !at.in_block) { return half.ready; }
    const BlockUse& use = segment[at.use];
    const Block& block = program_.block(use.work);
    if (at.item == block.items.size()) { return half.ready; }
    const Item& item = block.items[at.item];
    Seconds ready = half.ready;
    if (const auto awaited = item.waits_for()) { ready = max(ready, half.ends[(*awaited).index()]); }
    if (item.kernel() != nullptr) { return max(ready, kernel_); }
    if (const auto* launch = item.collective()) {
      ready = max(max(ready, half.stream), collective_);
      return occupies_compute(program_, *launch) ? max(ready, kernel_) : ready;
    }
    return ready;
  }

  // The begin of a segment, the begin of an execution, an item, the end of an execution, or the end of a segment.
  void step(Half& half) {
    const auto& [segment, waits_for_overlapped] = half.runs[half.run];
    Place& at = half.at;
    if (!std::exchange(at.has_begun, true)) {
      if (!segment->empty()) { overlap(segment->front().gather, half.ready); }
      at.arrived = overlapped_;
      return;
    }
    if (at.use == segment->size()) {
      if (waits_for_overlapped) { half.ready = max(half.ready, overlapped_); }
      ++half.run;
      half.at = {};
      return;
    }
    const BlockUse& use = (*segment)[at.use];
    if (!std::exchange(at.in_block, true)) { return begin_execution(half, *segment, use); }
    if (at.item < program_.block(use.work).items.size()) { return run_item(half, use.work, at.item++); }
    end_execution(half, *segment, use);
  }

  void begin_execution(Half& half, const Segment& segment, const BlockUse& use) {
    if (use.gather) { half.ready = max(half.ready, half.at.arrived); }
    if (use.is_blocking_gather) {
      half.ready = max(half.ready, overlapped_);
    } else {
      gather_next(half, segment);
    }
    const Block& block = program_.block(use.work);
    half.at.item = 0;
    half.at.launched = Seconds(0);
    half.ends.assign(block.items.size(), Seconds(0));
    if (block.launch > Seconds(0)) { host_ = half.at.launched = max(host_, half.ready) + block.launch; }
  }

  void end_execution(Half& half, const Segment& segment, const BlockUse& use) {
    for (const Seconds end : half.ends) { half.ready = max(half.ready, end); }
    half.ready = max(half.ready, half.at.launched);
    half.at.in_block = false;
    if (use.is_blocking_gather) {
      overlapped_ = half.ready;
      gather_next(half, segment);
    }
    overlap(use.reduce, half.ready);
    if (++half.at.done < use.repeat) { return; }
    half.at.done = 0;
    ++half.at.use;
  }

  void gather_next(Half& half, const Segment& segment) {
    const auto next = next_gather(segment, half.at.use, half.at.done);
    if (!next) { return; }
    overlap(next, half.ready);
    half.at.arrived = overlapped_;
  }

  // Calls of a gather or a reduction, which start behind `start`.
  void overlap(OptionalBlockId id, Seconds start) {
    if (!id) { return; }
    Seconds end = max(overlapped_, start);
    const auto& items = program_.block(*id).items;
    const std::vector<Seconds>& times = times_.of(*id);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (times[i] > Seconds(0)) { end = overlapped_ = exchange(items[i].collective()->call, end, times[i]); }
    }
  }

  // The end of a call that could start at `start`. Transfers of the second tier wait for no collective.
  Seconds exchange(const CollectiveCall& call, Seconds start, Seconds time) {
    if (route_of(call, program_.mesh) == Route::host) { return start + time; }
    return collective_ = max(collective_, start) + time;
  }

  void run_item(Half& half, BlockId block, std::size_t number) {
    const Item& item = program_.block(block).items[number];
    const Seconds time = times_.of(block)[number];
    half.left -= time;
    if (const auto awaited = item.waits_for()) { half.ready = max(half.ready, half.ends[(*awaited).index()]); }
    if (item.kernel() != nullptr) { half.ready = kernel_ = max(half.ready, kernel_) + time; }
    const auto* collective = item.collective();
    if (collective == nullptr || time == Seconds(0)) { return; }
    const bool computes = occupies_compute(program_, *collective);
    const Seconds start = max(max(half.ready, half.stream), computes ? kernel_ : Seconds(0));
    const Seconds end = exchange(collective->call, start, time);
    if (computes) { kernel_ = end; }
    half.ends[number] = half.stream = end;
    if (!collective->asynchronous) { half.ready = end; }
  }

  const Program& program_;
  ItemTimes& times_;
  // When each shared stream is free: compute, launches, collectives; gathers, reductions and transfers of the second
  // tier.
  Seconds kernel_, host_, collective_, overlapped_;
};

}  // namespace

PairOrder pair_order(const Program& program, ItemTimes& times, const ChunkProgram& forward,
                     const ChunkProgram& backward) {
  Half first{.runs = {{&forward.forward, forward.waits_for_store}}};
  Half second{.runs = {{&backward.backward, backward.weight.empty() && backward.waits_for_reduce}}};
  if (!backward.weight.empty()) { second.runs.push_back({&backward.weight, backward.waits_for_reduce}); }
  PairOrder order = Pair(program, times).play({first, second}, true);
  if (!program.pipeline.pairs) { return order; }
  PairOrder in_sequence = Pair(program, times).play({std::move(first), std::move(second)}, false);
  return in_sequence.time < order.time ? in_sequence : order;
}

std::vector<PairOrder> pair_orders(const Program& program, ItemTimes& times) {
  std::vector<PairOrder> orders;
  if (!has_pairs(program.pipeline)) { return orders; }
  orders.resize(program.chunks.size() * program.chunks.size());
  for (std::int64_t stage = 0; stage < program.plan.pp; ++stage) {
    const auto& chunks = program.class_of(stage).chunks;
    for (const auto& [chunk, paired_chunk] : paired_chunks(program.pipeline, stage)) {
      const ChunkProgramId forward = chunks[chunk].program, backward = chunks[paired_chunk].program;
      PairOrder& order = orders[pair_index(program, forward, backward)];
      if (order.halves.empty()) {
        order = pair_order(program, times, program.chunks[forward], program.chunks[backward]);
      }
    }
  }
  return orders;
}

}  // namespace orrery::parallel
