// The solver of any order: every stage walks its list as far as what has arrived allows.
//
// Set: the list of every stage; where results go (to which chunk on which stage, how much later). Computed: start and
// end of every task. A result is written, with its transfer added, into the place of the task that waits for it; a
// stage stops at a task whose place is empty and is looked at again when a neighbour has got further. The order in
// which stages are looked at does not matter: a start is a maximum over things that are known by then. Tasks left when
// no stage can get further would be a deadlock of the orders; it breaks the contract.
//
// Complexity: O(tasks); a stage is looked at again only after a neighbour ran a task. Storage: two numbers per chunk
// and micro-batch; task, start and end per task.
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

  // Fills stage_end and last_backward_start, which have their sizes already.
  void read(PipelineSolution& solution) const;

  // The list of a stage, and when its tasks start and end.
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
  [[nodiscard]] std::int64_t backward_cell(const PipelineTask& task, std::int64_t cell) const;

  static constexpr Ticks kMissing = std::numeric_limits<Ticks>::max();
  static constexpr std::int64_t kNobody = -1;

  // A cell is a chunk on a stage: stage * chunks + chunk. A place is cell * m + micro-batch.
  PipelineShape shape_;
  PipelineTimes times_;
  PipelineStorage& storage_;
  std::int64_t p_, v_;
  std::int64_t m_;                  // micro-batches of a chunk
  std::int64_t* begin_ = nullptr;   // [stage]: its first task in the storage; [p]: end of all
  std::int64_t* next_ = nullptr;    // [stage]: the task it is at
  std::int64_t* queue_ = nullptr;   // ring of p: stages to look at
  std::int64_t* queued_ = nullptr;  // [stage]: whether it is in the ring
  std::int64_t queue_head_ = 0, queue_size_ = 0;
  std::int64_t* forward_to_ = nullptr;   // [cell]: who takes its activations, kNobody behind the last
  std::int64_t* backward_to_ = nullptr;  // [cell]: who takes its gradients, kNobody behind the first
  Ticks* forward_hop_ = nullptr;         // [cell]: how long they take there
  Ticks* backward_hop_ = nullptr;
  Ticks* forward_ready_ = nullptr;   // [place]: when the forward's input is there
  Ticks* backward_ready_ = nullptr;  // ... the backward's
  Ticks* start_ = nullptr;           // [task]
  Ticks* end_ = nullptr;
};

}  // namespace orrery::parallel
