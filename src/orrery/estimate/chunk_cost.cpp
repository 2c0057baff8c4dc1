#include "orrery/estimate/chunk_cost.hpp"

#include <algorithm>

namespace orrery::estimate {

using parallel::ChunkProgram;

FirstGathers first_gathers(const ChunkProgram& chunk, const std::vector<Cost>& blocks) {
  if (segment_side(chunk.forward, blocks).total() > Seconds(0)) {
    return {.later = true, .updated = false, .time = {}};
  }
  const Side first = segment_side(chunk.first_forward, blocks);
  return {.later = false, .updated = first.total() > Seconds(0), .time = first.dp};
}

ChunkCost price_chunk(const ChunkProgram& chunk, const std::vector<Cost>& blocks, Concurrency concurrency) {
  ChunkCost cost;
  const bool separate_weight = !chunk.weight.empty();
  const auto stall = [&](const parallel::Segment& segment, const Cost& work, bool waits) {
    const Streams streams = run_segment(segment, blocks, {}, concurrency);
    return max(Seconds(0), (waits ? max(streams.compute, streams.side) : streams.compute) - work.time);
  };
  cost.forward = segment_work(chunk.forward, blocks);
  cost.backward = segment_work(chunk.backward, blocks);
  cost.weight = segment_work(chunk.weight, blocks);
  cost.forward_stall = stall(chunk.forward, cost.forward, chunk.waits_for_store);
  cost.backward_stall = stall(chunk.backward, cost.backward, chunk.waits_for_reduce && !separate_weight);
  cost.weight_stall = stall(chunk.weight, cost.weight, chunk.waits_for_reduce && separate_weight);
  return cost;
}

void price_last_backward(ChunkCost& cost, const ChunkProgram& chunk, const std::vector<Cost>& blocks,
                         Concurrency concurrency) {
  const Streams streams = run_segment(chunk.last_backward, blocks, {}, concurrency);
  cost.last_side = streams.side;
  if (cost.reductions == Seconds(0) || (concurrency.interference == 0.0 && concurrency.ports == nullptr)) { return; }
  const bool gathers = std::any_of(chunk.last_backward.begin(), chunk.last_backward.end(),
                                   [](const auto& use) { return use.gather.has_value() || use.is_blocking_gather; });
  const Seconds alone =
      gathers ? run_segment(chunk.last_backward, blocks, {}).compute : segment_time(chunk.last_backward, blocks);
  cost.last_slowed = streams.slowed;
  cost.last_extra = max(Seconds(0), streams.compute - alone);
}

}  // namespace orrery::estimate
