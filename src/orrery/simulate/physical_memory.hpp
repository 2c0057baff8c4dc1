// Memory outside the accelerator under physical rules: each server divides its bandwidth equally between its concurrent
// requests. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/memory/fair_server.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_nodes.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

class PhysicalMemory {
 public:
  PhysicalMemory(const SimulationJob& job, PhysicalRounds& rounds, PhysicalNodes& nodes);
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  // A memory node starts its request, which arrives at the server one latency later.
  void start(std::uint32_t rank, std::uint32_t node);
  void arrive(std::uint32_t request);
  void leave(std::uint32_t server, std::uint32_t version);

 private:
  struct Request {
    std::uint32_t rank = 0, node = 0, server = 0;
    std::uint64_t alone = 0;  // picoseconds, with all of the bandwidth
  };
  struct Server {
    memory::FairServer server;
    std::uint32_t version = 0;  // of the next expected end; events of older versions have no effect
  };

  void expect_next(std::uint32_t server);

  const SimulationJob& job_;
  PhysicalRounds& rounds_;
  PhysicalNodes& nodes_;
  std::vector<Server> servers_;
  Pool<Request> requests_;
};

}  // namespace orrery::simulate
