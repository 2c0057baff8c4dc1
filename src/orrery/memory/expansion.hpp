// Remote memory of ranks, in the four arrangements of ASTRA-sim's analytical memory model: none, one memory per rank,
// one per node, one pool. A shared memory serves one request at a time, first come first served; a memory per rank
// serves all requests concurrently.
//
// Left out: capacity, direction (loads and stores take the same time), and the links between rank and memory.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace orrery::memory {

// Spelled as in its files.
enum class Arrangement : std::uint8_t {
  NO_MEMORY_EXPANSION,
  PER_NPU_MEMORY_EXPANSION,
  PER_NODE_MEMORY_EXPANSION,
  MEMORY_POOL
};

struct Expansion {
  Arrangement arrangement = Arrangement::NO_MEMORY_EXPANSION;
  std::uint64_t latency_ns = 0;
  std::uint64_t bytes_per_ns = 0;    // > 0 unless there is no expansion
  std::uint32_t ranks_per_node = 1;  // PER_NODE_MEMORY_EXPANSION

  // Nanoseconds of one request alone: latency + bytes / bandwidth, rounded down.
  [[nodiscard]] std::uint64_t service_ns(std::uint64_t bytes) const;

  // The server of a rank, where memory is shared.
  [[nodiscard]] std::optional<std::uint32_t> server(std::uint32_t rank) const;

  [[nodiscard]] std::uint32_t servers(std::uint32_t ranks) const;
};

// A request of one rank's node of the graph.
struct Request {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
  std::uint64_t bytes = 0;
};

// One server with its queue.
class Server {
 public:
  // The request, if the server is idle; otherwise it is queued.
  [[nodiscard]] std::optional<Request> arrive(const Request& request);

  // The current request has ended: the next request of the queue, if there is one.
  [[nodiscard]] std::optional<Request> leave();

 private:
  bool busy_ = false;
  std::deque<Request> waiting_;
};

}  // namespace orrery::memory
