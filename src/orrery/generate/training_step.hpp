// The training steps of one rank: tasks of its stage in pipeline order, then gradient synchronisation and optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/generate/stage_messages.hpp"
#include "orrery/generate/streams.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/pipeline.hpp"

namespace orrery::generate {

// A task of a stage and the nodes that were written for it: ids first to end - 1.
struct TaskNodes {
  parallel::PipelineTask task;
  NodeId first = 0, end = 0;
};

// A task starts when its input has arrived and the task before it has ended; messages occupy no stream. Both
// micro-batches of a pair start when both inputs are there, and end together.
class TrainingSteps {
 public:
  // `pairs`: parallel::pair_orders().
  TrainingSteps(const parallel::Program& program, const hardware::Stack& stack,
                const std::vector<parallel::PairOrder>& pairs, Streams& streams);

  // `tasks`: gets those that are written, in their order; null: not wanted.
  void write(std::int64_t steps, std::vector<TaskNodes>* tasks = nullptr);

 private:
  void write_step(std::vector<TaskNodes>* tasks);
  void gather_updated_weights();
  void run_task(const parallel::PipelineTask& task);
  void run_pair(const parallel::PipelineTask& task);
  [[nodiscard]] SegmentRun forward_run(std::int64_t chunk, std::int64_t micro_batch) const;
  // `splits`: the weight gradients are a task of their own.
  [[nodiscard]] std::vector<SegmentRun> backward_runs(std::int64_t chunk, std::int64_t micro_batch, bool splits) const;
  [[nodiscard]] SegmentRun weight_run(const parallel::ChunkProgram& chunk, std::int64_t micro_batch) const;
  void run_finish();
  void align_reductions(std::int64_t chunk, std::int64_t micro_batch);
  void reduce_next();
  // Aligned reductions (ChunkProgram::last_backward).
  [[nodiscard]] bool reduces_later(std::int64_t chunk) const;

  // The compute stream waits for the input of a chunk's forward or backward pass, if it comes from another rank. True
  // if it does.
  [[nodiscard]] bool receive(bool forward, std::int64_t chunk, std::int64_t micro_batch);
  // Gathers an input that has arrived in parts.
  void gather_input();
  void send(bool forward, std::int64_t chunk, std::int64_t micro_batch);
  [[nodiscard]] bool is_last(std::int64_t micro_batch) const;
  [[nodiscard]] const parallel::ChunkProgram& chunk_of(std::int64_t chunk) const;

  const parallel::Program& program_;
  const hardware::Stack& stack_;
  const std::vector<parallel::PairOrder>& pairs_;
  Streams& streams_;
  StageMessages messages_;
  std::int64_t stage_;
  const parallel::RankClass& rank_class_;
  std::vector<parallel::PipelineTask> order_;
  std::int64_t step_ = 0;
  Execution work_;
  // What the forward or backward pass before waited for: receives are posted one pass ahead. Weight gradients are too
  // short for a transfer and the gather behind it.
  NodeIds previous_start_;
  struct Unreduced {
    const parallel::Segment* segment;
    std::int64_t backwards;  // to run before its reductions are issued
  };
  std::vector<Unreduced> unreduced_;  // first comes first
  std::vector<Arrivals> arrivals_;    // [chunk]: of weights that were gathered at the start of the step
};

}  // namespace orrery::generate
