#include "orrery/estimate/pair.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "orrery/estimate/priced.hpp"
#include "orrery/parallel/calls.hpp"
#include "orrery/parallel/pair_turns.hpp"

namespace orrery::estimate {

using parallel::Block;
using parallel::BlockId;
using parallel::BlockUse;
using parallel::ChunkProgram;
using parallel::Item;
using parallel::OptionalBlockId;
using parallel::Program;
using parallel::Segment;

const std::vector<Seconds>& ItemTimes::of(BlockId id) {
  std::vector<Seconds>& times = times_[id.index()];
  const auto& items = program_.block(id).items;
  if (!times.empty() || items.empty()) { return times; }
  times.reserve(items.size());
  for (const Item& item : items) {
    if (const auto* launch = item.kernel()) {
      times.push_back(price_kernel(*launch, fabric_));
    } else if (const auto* collective = item.collective()) {
      times.push_back(price_call(collective->call, fabric_, program_.mesh, &prices_));
    } else {
      times.emplace_back();
    }
  }
  return times;
}

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
};

class Pair {
 public:
  Pair(const Program& program, ItemTimes& times) : program_(program), times_(times) {}

  Seconds play(std::array<Half, 2> halves) {
    std::array<std::int64_t, 2> collectives{};
    for (std::size_t i = 0; i < halves.size(); ++i) {
      for (const SegmentRun& run : halves[i].runs) { collectives[i] += collectives_of(program_, *run.segment); }
    }
    for (parallel::PairTurns turns(collectives[0], collectives[1]); !turns.ended();) {
      const std::size_t half = turns.next();
      turns.take(half, !advance(halves[half]));
    }
    return max(halves[0].ready, halves[1].ready);
  }

 private:
  // Until it has issued a collective of a block; false at the end of its segments.
  bool advance(Half& half) {
    for (; half.run < half.runs.size(); ++half.run) {
      if (advance_segment(half)) { return true; }
      half.at = {};
    }
    return false;
  }

  bool advance_segment(Half& half) {
    const auto& [segment, waits_for_overlapped] = half.runs[half.run];
    Place& at = half.at;
    if (!std::exchange(at.has_begun, true)) {
      if (!segment->empty()) { overlap(segment->front().gather, half.ready); }
      at.arrived = overlapped_;
    }
    while (at.use < segment->size()) {
      const BlockUse& use = (*segment)[at.use];
      if (!std::exchange(at.in_block, true)) { begin_execution(half, *segment, use); }
      const Block& block = program_.block(use.work);
      while (at.item < block.items.size()) {
        if (run_item(half, use.work, at.item++)) { return true; }
      }
      end_execution(half, *segment, use);
    }
    if (waits_for_overlapped) { half.ready = max(half.ready, overlapped_); }
    return false;
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
  Seconds exchange(const parallel::CollectiveCall& call, Seconds start, Seconds time) {
    if (route_of(call, program_.mesh) == Route::host) { return start + time; }
    return collective_ = max(collective_, start) + time;
  }

  // Whether it is a collective.
  bool run_item(Half& half, BlockId block, std::size_t number) {
    const Item& item = program_.block(block).items[number];
    const Seconds time = times_.of(block)[number];
    if (const auto awaited = item.waits_for()) { half.ready = max(half.ready, half.ends[(*awaited).index()]); }
    if (item.kernel() != nullptr) { half.ready = kernel_ = max(half.ready, kernel_) + time; }
    const auto* collective = item.collective();
    if (collective == nullptr) { return false; }
    if (time == Seconds(0)) { return true; }
    const Seconds end = exchange(collective->call, max(half.ready, half.stream), time);
    half.ends[number] = half.stream = end;
    if (!collective->asynchronous) { half.ready = end; }
    return true;
  }

  const Program& program_;
  ItemTimes& times_;
  // When each shared stream is free: compute, launches, collectives; gathers, reductions and transfers of the second
  // tier.
  Seconds kernel_, host_, collective_, overlapped_;
};

}  // namespace

Seconds pair_time(const Program& program, ItemTimes& times, const ChunkProgram& forward, const ChunkProgram& backward) {
  Half first{.runs = {{&forward.forward, forward.waits_for_store}}};
  Half second{.runs = {{&backward.backward, backward.weight.empty() && backward.waits_for_reduce}}};
  if (!backward.weight.empty()) { second.runs.push_back({&backward.weight, backward.waits_for_reduce}); }
  return Pair(program, times).play({std::move(first), std::move(second)});
}

}  // namespace orrery::estimate
