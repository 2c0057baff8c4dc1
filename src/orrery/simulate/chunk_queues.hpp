// The queues in which the chunks of a rank wait for a dimension: those that run in front, behind them those that wait,
// by the priority of their collective. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/simulate/chunk_registry.hpp"

namespace orrery::simulate {

class ChunkQueues {
 public:
  // `width`: how many chunks of a queue may run.
  ChunkQueues(ChunkRegistry& chunks, std::size_t queues, std::uint32_t width);

  // Behind those that run and those that are as urgent.
  void insert(std::uint32_t chunk);
  void remove(std::uint32_t chunk);
  // The chunk has the place in front of `behind`, which waits, and waits there.
  void insert_before(std::uint32_t chunk, std::uint32_t behind);

  // The first chunk that waits, if another one may run; else kNone.
  [[nodiscard]] std::uint32_t admissible(std::uint32_t queue) const {
    return queues_[queue].running < width_ ? queues_[queue].waiting : kNone;
  }
  // The chunk, which is admissible, runs.
  void start(std::uint32_t chunk);
  // A chunk of the queue has stopped to run.
  void stop_one(std::uint32_t queue) { --queues_[queue].running; }

  [[nodiscard]] bool is_open(std::uint32_t queue) const {
    return queues_[queue].running < width_ && queues_[queue].waiting == kNone;
  }
  [[nodiscard]] std::uint32_t front(std::uint32_t queue) const { return queues_[queue].first; }
  // Several chunks of a queue ran at the same time.
  [[nodiscard]] bool overlapped() const { return overlapped_; }

 private:
  struct Queue {
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t waiting = kNone;  // the first that has not started
    std::uint32_t running = 0;
  };

  ChunkRegistry& chunks_;
  std::vector<Queue> queues_;
  std::uint32_t width_;
  bool overlapped_ = false;
};

}  // namespace orrery::simulate
