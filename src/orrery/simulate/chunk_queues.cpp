#include "orrery/simulate/chunk_queues.hpp"

namespace orrery::simulate {

ChunkQueues::ChunkQueues(ChunkRegistry& chunks, std::size_t queues, std::uint32_t width)
    : chunks_(chunks), queues_(queues), width_(width) {}

void ChunkQueues::insert(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  Queue& queue = queues_[chunk.queue];
  std::uint32_t before = queue.last;
  if (chunk.by_bytes) {
    std::uint32_t behind = queue.waiting;
    while (behind != kNone && chunks_[behind].bytes < chunk.bytes) { behind = chunks_[behind].after; }
    before = behind == kNone ? queue.last : chunks_[behind].before;
  }
  while (!chunk.by_bytes && before != kNone && !chunks_[before].started && chunks_[before].priority < chunk.priority) {
    before = chunks_[before].before;
  }
  const std::uint32_t after = before == kNone ? queue.first : chunks_[before].after;
  chunk.before = before;
  chunk.after = after;
  (before == kNone ? queue.first : chunks_[before].after) = id;
  (after == kNone ? queue.last : chunks_[after].before) = id;
  if (queue.waiting == after) { queue.waiting = id; }
}

void ChunkQueues::insert_before(std::uint32_t id, std::uint32_t behind) {
  Chunk& chunk = chunks_[id];
  Chunk& next = chunks_[behind];
  Queue& queue = queues_[next.queue];
  chunk.before = next.before;
  chunk.after = behind;
  (chunk.before == kNone ? queue.first : chunks_[chunk.before].after) = id;
  next.before = id;
  queue.waiting = id;
}

void ChunkQueues::remove(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  Queue& queue = queues_[chunk.queue];
  if (queue.waiting == id) { queue.waiting = chunk.after; }
  (chunk.before == kNone ? queue.first : chunks_[chunk.before].after) = chunk.after;
  (chunk.after == kNone ? queue.last : chunks_[chunk.after].before) = chunk.before;
}

void ChunkQueues::start(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  Queue& queue = queues_[chunk.queue];
  chunk.started = true;
  queue.waiting = chunk.after;
  ++queue.running;
  overlapped_ = overlapped_ || queue.running > 1;
}

}  // namespace orrery::simulate
