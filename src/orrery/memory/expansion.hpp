// Memory beyond the accelerator's own, in the four arrangements that ASTRA-sim's analytical memory model has: none, one
// per rank, one per node of ranks, one pool of all. A memory that is shared serves one request at a time, first come
// first served; one per rank takes any number at once.
//
// Left out: capacity, direction (a load costs what a store costs), and what lies between rank and memory.
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

  // Nanoseconds of one request by itself: latency + bytes / bandwidth, cut to whole ones.
  [[nodiscard]] std::uint64_t service_ns(std::uint64_t bytes) const;

  // The one that serves a rank, where memory is shared.
  [[nodiscard]] std::optional<std::uint32_t> server(std::uint32_t rank) const;

  [[nodiscard]] std::uint32_t servers(std::uint32_t ranks) const;
};

// Somebody who waits for a server.
struct Request {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
  std::uint64_t bytes = 0;
};

// One server: who is served, who waits.
class Server {
 public:
  // The request, if it is served at once; else it waits.
  [[nodiscard]] std::optional<Request> arrive(const Request& request);

  // The server is free: the next request, if one waits.
  [[nodiscard]] std::optional<Request> leave();

 private:
  bool busy_ = false;
  std::deque<Request> waiting_;
};

}  // namespace orrery::memory
