// The order in which a rank runs the two halves of a pair: the forward of a chunk and the whole backward of another, or
// of the same for an earlier micro-batch. `estimate` takes its time, and `generate` writes the order as dependencies.
//
// Both halves use one compute stream, one host, one stream of collectives (gathers, reductions and rings included), and
// one of gathers, reductions and transfers of the second memory tier. What uses a stream waits for what has used it
// before, in the order of the steps. Under DualPipe everything overlaps. Where dispatch and combine overlap
// (PipelineShape::pairs), other collectives that block the compute stream of their half occupy it: only dispatch and
// combine let the other half compute. A step is the begin or the end of a segment, the begin of an execution of a block
// (its launches, the gather for the next one), an item, or the end of an execution (waits, its reduction).
//
// Set: times of the items, each alone. Computed: the order with the shortest time out of a fixed set (kRules of the
// implementation): halves that alternate where one may have to wait for a call and at the end of every block, at once
// or after a lead, halves that advance in proportion, and one half after the other. With a given order, the end of the
// pair consists of sums and maxima of the times, so it is monotone in each of them, and so is the least of several: no
// shorter kernel or collective makes a pair longer, which list scheduling by times does (R. L. Graham, Bounds on
// Multiprocessing Timing Anomalies, 1969). All ranks of a stage have the same order, and so all ranks of a group: it
// does not depend on when something starts on a rank, and nothing slows kernels or collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/parallel/item_times.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

struct PairOrder {
  Seconds time;                           // from the start of the pair until both halves have ended
  std::vector<std::uint8_t> halves = {};  // [step]: 0 of the forward, 1 of the backward
};

// O(items of both halves), for each order of the set.
[[nodiscard]] PairOrder pair_order(const Program& program, ItemTimes& times, const ChunkProgram& forward,
                                   const ChunkProgram& backward);

// Whether a collective of a half keeps the other half from computing until it has ended.
[[nodiscard]] inline bool occupies_compute(const Program& program, const CollectiveLaunch& launch) {
  return program.pipeline.pairs && !launch.asynchronous && launch.call.group != GroupKind::ep;
}

// Of every pair that a stage of the program runs: [pair_index()], without steps where no stage does. Empty without
// pairs.
[[nodiscard]] std::vector<PairOrder> pair_orders(const Program& program, ItemTimes& times);
// Their times alone, which takes less.
[[nodiscard]] std::vector<Seconds> pair_times(const Program& program, ItemTimes& times);
[[nodiscard]] inline std::size_t pair_index(const Program& program, ChunkProgramId forward, ChunkProgramId backward) {
  return forward.index() * program.chunks.size() + backward.index();
}

}  // namespace orrery::parallel
