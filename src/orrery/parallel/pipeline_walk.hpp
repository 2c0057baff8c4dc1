// The solver for any order: every stage runs its list of tasks as far as their inputs have arrived.
//
// Set: the list of every stage; the destination of every result (chunk, stage, transfer time). Computed: start and end
// of every task. A result is written, with its transfer added, to the slot of the task that depends on it; a stage
// stops at a task whose slot is empty and is queued again when a neighbour has progressed. The order of the queue does
// not matter: a start is a maximum over known values. Tasks left at the end would mean a deadlock of the orders; this
// breaks the contract.
//
// Complexity: O(tasks); a stage is queued again only after a neighbour ran a task. Storage: two numbers per chunk and
// micro-batch; task, start and end per task.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {

class PipelineWalk {
 public:
  PipelineWalk(const PipelineShape& shape, const PipelineTimes& times, PipelineStorage& storage);

  void run();

  // Fills stage_end, last_backward_start and, unless it is empty, aligned_reduce_start, which must have their sizes.
  void read(PipelineSolution& solution) const;

  // The task list of a stage, and when its tasks start and end.
  [[nodiscard]] std::span<const PipelineTask> tasks(std::int64_t stage) const;
  [[nodiscard]] std::span<const Ticks> starts(std::int64_t stage) const;
  [[nodiscard]] std::span<const Ticks> ends(std::int64_t stage) const;

 private:
  struct Input {
    Ticks ready = 0;
    Ticks duration = 0;
  };

  void set_storage();
  void set_routes();
  void wake(std::int64_t stage);
  [[nodiscard]] bool advance(std::int64_t stage);
  [[nodiscard]] Input input(const PipelineTask& task, std::int64_t cell) const;
  void finish_forward(std::int64_t cell, std::int64_t micro_batch, Ticks end);
  void finish_backward(std::int64_t cell, std::int64_t micro_batch, Ticks end);
  [[nodiscard]] static std::int64_t backward_cell(const PipelineTask& pair, std::int64_t cell);
  [[nodiscard]] Ticks extra(const PipelineTask& task, std::int64_t cell) const;

  static constexpr Ticks kMissing = std::numeric_limits<Ticks>::max();
  static constexpr std::int64_t kNobody = -1;

  // A cell is a chunk on a stage: stage * chunks + chunk. A slot is cell * m + micro-batch.
  PipelineShape shape_;
  PipelineTimes times_;
  PipelineStorage& storage_;
  std::int64_t p_, v_;
  std::int64_t m_;                  // micro-batches of a chunk
  std::int64_t* begin_ = nullptr;   // [stage]: index of its first task; [p]: number of all tasks
  std::int64_t* next_ = nullptr;    // [stage]: index of its current task
  std::int64_t* queue_ = nullptr;   // ring buffer of p entries: stages to check
  std::int64_t* queued_ = nullptr;  // [stage]: whether it is in the queue
  std::int64_t queue_head_ = 0, queue_size_ = 0;
  std::int64_t* forward_to_ = nullptr;   // [cell]: cell that receives its activations, kNobody after the last
  std::int64_t* backward_to_ = nullptr;  // [cell]: cell that receives its gradients, kNobody after the first
  Ticks* forward_hop_ = nullptr;         // [cell]: transfer time to that cell
  Ticks* backward_hop_ = nullptr;
  Ticks* forward_ready_ = nullptr;   // [slot]: when the forward's input has arrived
  Ticks* backward_ready_ = nullptr;  // ... the backward's
  Ticks* start_ = nullptr;           // [task]
  Ticks* end_ = nullptr;
};

}  // namespace orrery::parallel
