// The queues of chunks for a dimension of a rank: first the running chunks, then the waiting ones by the priority of
// their collective. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/simulate/chunk_registry.hpp"

namespace orrery::simulate {

class ChunkQueues {
 public:
  // `width`: the number of chunks of a queue that may run concurrently.
  ChunkQueues(ChunkRegistry& chunks, std::size_t queues, std::uint32_t width);

  // Inserts the chunk behind running chunks and chunks of equal or higher priority; if by_bytes is set, behind running
  // chunks and smaller ones.
  void insert(std::uint32_t chunk);
  void remove(std::uint32_t chunk);
  // Inserts the chunk, which waits, in front of `behind`, which is the first that waits.
  void insert_before(std::uint32_t chunk, std::uint32_t behind);

  // The first waiting chunk, if one more chunk may run; else kNone.
  [[nodiscard]] std::uint32_t admissible(std::uint32_t queue) const {
    return queues_[queue].running < width_ ? queues_[queue].waiting : kNone;
  }
  // Starts the chunk, which must be admissible.
  void start(std::uint32_t chunk);
  // A chunk of the queue is no longer running.
  void stop_one(std::uint32_t queue) { --queues_[queue].running; }

  [[nodiscard]] bool is_open(std::uint32_t queue) const {
    return queues_[queue].running < width_ && queues_[queue].waiting == kNone;
  }
  [[nodiscard]] std::uint32_t front(std::uint32_t queue) const { return queues_[queue].first; }
  // Whether several chunks of a queue were running concurrently.
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
