#include "orrery/network/chunk_order.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "orrery/core/error.hpp"

namespace orrery::network {

namespace {

std::vector<std::uint32_t> default_order(const ChunkCall& call, std::span<const ChunkDimension> dimensions) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d].members > 1) { order.push_back(d); }
  }
  if (call.collective == Collective::all_gather) { std::reverse(order.begin(), order.end()); }
  return order;
}

double members_of(std::span<const ChunkDimension> dimensions) {
  double members = 1;
  for (const ChunkDimension& dimension : dimensions) { members *= static_cast<double>(dimension.members); }
  return members;
}

// Of a chunk before its first phase: of an all-gather the shard of one member.
double bytes_at_start(const ChunkCall& call, std::span<const ChunkDimension> dimensions) {
  const double chunk = call.bytes / static_cast<double>(call.chunks);
  return call.collective == Collective::all_gather ? chunk / members_of(dimensions) : chunk;
}

// Bytes that a device sends in a phase, for each byte that its chunk has before.
double sent_per_byte(bool gathers, const ChunkDimension& dimension) {
  const auto n = static_cast<double>(dimension.members);
  return gathers ? n - 1 : (n - 1) / n;
}

double bytes_after(bool gathers, const ChunkDimension& dimension, double bytes) {
  const auto n = static_cast<double>(dimension.members);
  return gathers ? bytes * n : bytes / n;
}

class ChunkRun {
 public:
  ChunkRun(const ChunkCall& call, std::span<const ChunkDimension> dimensions)
      : call_(call),
        dimensions_(dimensions),
        queues_(dimensions.size()),
        chunks_(static_cast<std::size_t>(call.chunks)) {
    times_.sent.assign(dimensions.size(), 0.0);
    times_.busy.assign(dimensions.size(), 0.0);
    const auto fixed =
        call.order == ChunkOrder::themis ? themis_orders(call, dimensions) : std::vector<std::vector<std::uint32_t>>();
    for (std::uint32_t i = 0; i < chunks_.size(); ++i) {
      Chunk& chunk = chunks_[i];
      chunk.bytes = bytes_at_start(call, dimensions);
      chunk.gathers = call.collective == Collective::all_gather;
      chunk.open = default_order(call, dimensions);
      if (!fixed.empty()) { chunk.open = fixed[i]; }
    }
  }

  ChunkTimes run() {
    for (std::uint32_t i = 0; i < chunks_.size(); ++i) { go_on(i, 0); }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      times_.finish = std::max(times_.finish, event.time);
      if (event.is_arrival) {
        go_on(event.what, event.time);
      } else {
        queues_[event.what].is_busy = false;
        serve(event.what, event.time);
      }
    }
    return std::move(times_);
  }

 private:
  struct Chunk {
    double bytes = 0;
    bool gathers = false;
    std::vector<std::uint32_t> open, done;  // dimensions of this half
  };
  struct Queue {
    std::vector<std::uint32_t> waiting;  // chunks in the order of their arrival
    double work = 0;                     // seconds of all that wait
    double until = 0;                    // of the chunk that is sent
    bool is_busy = false;
  };
  // Ends of sending come before arrivals of the same time; then the order in which the events were made.
  struct Event {
    double time = 0;
    bool is_arrival = false;
    std::uint64_t number = 0;
    std::uint32_t what = 0;  // a chunk that has arrived, or a dimension that has sent
    bool operator>(const Event& other) const {
      if (time != other.time) { return time > other.time; }
      return is_arrival != other.is_arrival ? is_arrival : number > other.number;
    }
  };

  [[nodiscard]] double seconds(const Chunk& chunk, std::uint32_t d) const {
    return chunk.bytes * sent_per_byte(chunk.gathers, dimensions_[d]) / dimensions_[d].bandwidth;
  }

  // To the next dimension; after the last one of a reduce-scatter back again, if it is half of an all-reduce.
  void go_on(std::uint32_t number, double now) {
    Chunk& chunk = chunks_[number];
    const bool returns = chunk.open.empty() && call_.collective == Collective::all_reduce && !chunk.gathers;
    if (returns) {
      chunk.gathers = true;
      chunk.open.assign(chunk.done.rbegin(), chunk.done.rend());
    }
    if (chunk.open.empty()) { return; }
    auto next = chunk.open.begin();
    if (call_.order == ChunkOrder::greedy && !returns && !is_way_back(chunk)) {
      next = std::min_element(chunk.open.begin(), chunk.open.end(),
                              [&](std::uint32_t a, std::uint32_t b) { return left_on(a, now) < left_on(b, now); });
    }
    const std::uint32_t d = *next;
    chunk.open.erase(next);
    chunk.done.push_back(d);
    queues_[d].waiting.push_back(number);
    queues_[d].work += seconds(chunk, d);
    serve(d, now);
  }

  [[nodiscard]] bool is_way_back(const Chunk& chunk) const {
    return chunk.gathers && call_.collective == Collective::all_reduce;
  }
  [[nodiscard]] double left_on(std::uint32_t d, double now) const {
    return queues_[d].work + (queues_[d].is_busy ? queues_[d].until - now : 0);
  }

  void serve(std::uint32_t d, double now) {
    Queue& queue = queues_[d];
    if (queue.is_busy || queue.waiting.empty()) { return; }
    auto next = queue.waiting.begin();
    if (call_.queue == ChunkQueue::smallest_first) {
      next = std::min_element(queue.waiting.begin(), queue.waiting.end(),
                              [&](std::uint32_t a, std::uint32_t b) { return chunks_[a].bytes < chunks_[b].bytes; });
    }
    const std::uint32_t number = *next;
    queue.waiting.erase(next);
    Chunk& chunk = chunks_[number];
    const double time = seconds(chunk, d);
    queue.work = queue.waiting.empty() ? 0 : queue.work - time;
    queue.until = now + time;
    queue.is_busy = true;
    times_.busy[d] += time;
    times_.sent[d] += time * dimensions_[d].bandwidth;
    chunk.bytes = bytes_after(chunk.gathers, dimensions_[d], chunk.bytes);
    events_.push({queue.until, false, made_++, d});
    events_.push({queue.until + dimensions_[d].latency, true, made_++, number});
  }

  const ChunkCall& call_;
  std::span<const ChunkDimension> dimensions_;
  std::vector<Queue> queues_;
  std::vector<Chunk> chunks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t made_ = 0;
  ChunkTimes times_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> themis_orders(const ChunkCall& call,
                                                      std::span<const ChunkDimension> dimensions) {
  const bool gathers = call.collective == Collective::all_gather;
  const double start = bytes_at_start(call, dimensions);
  const std::vector<std::uint32_t> usual = default_order(call, dimensions);
  std::vector<std::vector<std::uint32_t>> orders(static_cast<std::size_t>(call.chunks), usual);
  std::vector<double> loads(dimensions.size(), 0.0);  // bytes at the bandwidth of dimension 0
  const auto speed = [&](std::uint32_t d) { return dimensions[d].bandwidth / dimensions[0].bandwidth; };
  const auto is_less = [&](std::uint32_t a, std::uint32_t b) { return loads[a] < loads[b]; };
  for (auto& order : orders) {
    const std::uint32_t least = *std::min_element(usual.begin(), usual.end(), is_less);
    const std::uint32_t most = *std::max_element(usual.begin(), usual.end(), is_less);
    const double closing = (loads[most] - loads[least]) * speed(least) / sent_per_byte(gathers, dimensions[least]);
    if (closing >= start / call.gap_denominator) {
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return gathers ? is_less(b, a) : is_less(a, b); });
    }
    double bytes = start;
    for (const std::uint32_t d : order) {
      loads[d] += bytes * sent_per_byte(gathers, dimensions[d]) / speed(d);
      bytes = bytes_after(gathers, dimensions[d], bytes);
    }
  }
  return orders;
}

double ChunkTimes::bandwidth_use(std::span<const ChunkDimension> dimensions) const {
  double possible = 0;
  for (const ChunkDimension& dimension : dimensions) {
    if (dimension.members > 1) { possible += dimension.bandwidth * finish; }
  }
  return possible > 0 ? std::accumulate(sent.begin(), sent.end(), 0.0) / possible : 0;
}

ChunkTimes run_chunks(const ChunkCall& call, std::span<const ChunkDimension> dimensions) {
  ORRERY_ASSERT(call.chunks > 0 && !default_order(call, dimensions).empty());
  return ChunkRun(call, dimensions).run();
}

}  // namespace orrery::network
