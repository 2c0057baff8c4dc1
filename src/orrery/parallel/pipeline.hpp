// Pipeline schedules: the order in which each stage works on its micro-batches, and the times of all tasks.
//
// System solved (max-plus): for the tasks t of a stage in schedule order, with durations d,
//   start(t) = max( end(previous task of the stage), end(task t depends on) + transfer )      end(t) = start(t) + d(t)
// but for forwards of micro-batch 0, end(t) = max( start(t) + d(t), the earliest end that is set for it ),
// where forward (chunk c, micro-batch k) on virtual stage q = c * stages + stage depends on forward (k) on q - 1,
// backward on q depends on backward on q + 1, and the backward of the last virtual stage on its own forward. A weight
// task depends on its own backward, nothing else. Under DualPipe chunk 0 walks the stages up and chunk 1 down, each for
// half of the micro-batches (virtual stages of chunk 0: q = stage; of chunk 1: q = p - 1 - stage). A forward may run
// together with the whole backward of another micro-batch as one task, a pair: it starts when both could and both end
// at its end. DualPipe pairs the two chunks; PipelineShape::pairs is for the other schedules. Set: orders, durations,
// transfers. Computed: every start and end. A transfer delays its receiver and occupies nobody.
//
// Time is an integer number of picoseconds, so a periodic steady state is recognised exactly.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "orrery/parallel/plan.hpp"

namespace orrery::parallel {

using Ticks = std::int64_t;  // picoseconds

struct PipelineTask {
  enum class Kind : std::uint8_t {
    forward,
    backward,  // of inputs and weights, or of inputs only when a weight task follows
    weight,    // the weight gradient of an earlier backward
    pair,      // forward of `chunk` and `micro_batch`, overlapped with the whole backward of `paired_chunk` and
               // `paired_micro_batch`
  };
  Kind kind = Kind::forward;
  bool splits = false;           // a backward whose weight gradient is a separate task
  std::int32_t chunk = 0;        // model chunk of this stage
  std::int64_t micro_batch = 0;  // 0 .. m - 1; under DualPipe counted per direction, 0 .. m / 2 - 1
  std::int64_t paired_micro_batch = 0;
  std::int32_t paired_chunk = 0;  // under DualPipe the other chunk

  friend bool operator==(const PipelineTask&, const PipelineTask&) = default;
};

struct PipelineShape {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::int64_t stages = 1;         // p; even under dualpipe
  std::int64_t chunks = 1;         // v; 1 unless interleaved; always 2 under dualpipe
  std::int64_t micro_batches = 1;  // m; interleaved needs m % p == 0, dualpipe an even m of at least 2 p
  // Where one_f_one_b or interleaved alternates forward and backward, both run as one task, so that each communicates
  // while the other computes. Needs p = 1 or v > 1, as in Megatron-Core: a stage runs one more forward first, so that
  // no backward needs the forward that it is paired with.
  bool pairs = false;
};

// Whether a stage runs pairs if it has enough micro-batches.
[[nodiscard]] inline bool has_pairs(const PipelineShape& shape) {
  return shape.pairs || shape.schedule == ScheduleKind::dualpipe;
}

// Whether weight gradients are separate tasks.
[[nodiscard]] inline bool splits_backward(ScheduleKind schedule) {
  return schedule == ScheduleKind::zero_bubble || schedule == ScheduleKind::dualpipe;
}

// The tasks of one stage in the order it runs them. Megatron-LM's 1F1B and interleaved orders; GPipe: all forwards,
// then all backwards (last micro-batch first).
// ZB-H1 (Qi et al., arXiv:2401.10241, section 2.1 and figure 3): the forwards and backwards of 1F1B, every backward
// split, the weight task of micro-batch k straight behind the backward of micro-batch k + stage.
// DualPipe (DeepSeek-V3, arXiv:2412.19437, section 3.2.1; its public implementation deepseek-ai/DualPipe for what the
// paper leaves to a picture): eight steps, written down in pipeline_order_split.cpp.
[[nodiscard]] std::vector<PipelineTask> stage_order(const PipelineShape& shape, std::int64_t stage);

// Largest amount of activations alive at once on a stage: the maximum over the schedule of the sum of chunk_weight[c]
// over (chunk, micro-batch) pairs whose forward has started and whose gradients are not all done: whose backward, or,
// where it splits, whose weight task has not ended. During a pair of DualPipe both of its micro-batches are alive. In
// the pairs of PipelineShape::pairs, the backward frees a layer when the forward adds one. O(v); O(1) for
// the schedules that split.
// Conservative where backward splits: between backward and weight task a micro-batch counts in full, though only the
// inputs of products and the gradients of their outputs are needed then. ZB-H1 therefore holds min(m, p) on every
// stage. Its paper counts M_W < M_B for a deferred one: (p - i) M_B + i M_W on stage i, most on stage 0, as here, p
// M_B. DualPipe: p - r of the chunk that enters nearer to the stage and r + 1 of the other one, r = min(i, p - 1 - i);
// p + 1 together.
// replayed[c], if given, is what the backward of chunk c needs in addition while it runs: what it recomputes. Where
// backward splits, the largest one is added to the peak.
[[nodiscard]] double peak_in_flight(const PipelineShape& shape, std::int64_t stage,
                                    std::span<const double> chunk_weight, std::span<const double> replayed = {});

// Durations, indexed [stage * chunks + chunk].
struct PipelineTimes {
  std::span<const Ticks> forward;
  std::span<const Ticks> backward;  // inputs and weights; inputs alone where the task splits (see `weight`)
  // Transfer of activations out of / gradients out of stage i to its neighbour; index i = stage that sends forward
  // (i = p - 1: to stage 0, needed and read only when interleaved). One duration serves both directions.
  std::span<const Ticks> transfer;
  // [stage * chunks + chunk]: earliest end of micro-batch 0's forward (its weights may still be in transfer when the
  // step starts). Empty: no limit.
  std::span<const Ticks> first_forward_end = {};
  // Of weight tasks; a backward that does not split takes backward + weight. Must be empty unless the schedule splits.
  std::span<const Ticks> weight = {};
  // [pair_place()]: forward of a chunk together with the whole backward of another, or of the same. Must be empty
  // unless has_pairs(). Only those that occur are read.
  std::span<const Ticks> pair = {};
  // [stage * chunks + chunk]: how much longer than the others the task takes that completes the chunk's gradients
  // (PipelineSolution::last_backward_start): reductions run concurrently. Empty: as long as the others. Must be empty
  // under dualpipe.
  std::span<const Ticks> last_backward_extra = {};
};

// The chunks of the forward and of the backward of every pair that a stage runs, each combination once.
[[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> paired_chunks(const PipelineShape& shape,
                                                                             std::int64_t stage);

// Index into PipelineTimes::pair.
[[nodiscard]] inline std::size_t pair_place(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk,
                                            std::int64_t paired_chunk) {
  return static_cast<std::size_t>((stage * shape.chunks + chunk) * shape.chunks + paired_chunk);
}

struct PipelineSolution {
  Ticks makespan = 0;            // latest end of any task
  std::vector<Ticks> stage_end;  // end of each stage's last task
  // [stage * chunks + chunk]: start of the chunk's task that completes its gradients, when those of every other
  // micro-batch are done: its last backward (micro-batch m - 1; under gpipe, which runs backwards in reverse, 0), or,
  // where a weight task follows, that. Where it is a backward that does not split under a schedule that does, what
  // counts as its start is its end less its weight part.
  std::vector<Ticks> last_backward_start;
  // [stage * chunks + chunk], only of several chunks under interleaved: when all stages have run their part of stage
  // 0's last backward of the chunk and the tasks before it: end of the backward that stage i runs i backwards after the
  // chunk's last one, or of its last task. Reductions that all stages launch at the same time start here.
  std::vector<Ticks> aligned_reduce_start;
};

// Every task of every stage with its times, [stage][position in its order]: for drawings, and for more detail than
// PipelineSolution has. Solves the same system task by task, for any schedule. O(p v m).
struct SolvedTask {
  PipelineTask task;
  Ticks start = 0;
  Ticks end = 0;
};
[[nodiscard]] std::vector<std::vector<SolvedTask>> timeline(const PipelineShape& shape, const PipelineTimes& times);

// Buffers of the solvers, which outlive a solve.
struct PipelineStorage {
  std::vector<std::int64_t> numbers;
  std::vector<PipelineTask> tasks;
};

// Solves the system. Exact; steady-state periods of long schedules are skipped, not approximated.
// Durations are >= 0 and no path through the schedule sums to 2^61 ps (26 days) or more. A shape that cannot run to its
// end (interleaved with m % p != 0) breaks the contract. The returned solution lives in the solver until its next
// solve(); storage is kept, so that a search allocates nothing once the largest shape has been seen.
// O(p) for gpipe. At most O(p (m v + p)) otherwise, O(p) times the length of transient plus period when that is shorter
// (dualpipe: O(p) times p plus that). Tasks with PipelineShape::pairs: all, O(p v m).
class PipelineSolver {
 public:
  const PipelineSolution& solve(const PipelineShape& shape, const PipelineTimes& times);

 private:
  PipelineSolution solution_;
  PipelineStorage storage_;
};

}  // namespace orrery::parallel
