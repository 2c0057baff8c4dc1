// The time of a message between the network and the memory of a rank: the endpoint delay, or a transfer over the shared
// bus if that is modelled, and a reduction. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/simulate/bus.hpp"
#include "orrery/simulate/chunk.hpp"
#include "orrery/simulate/event.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

class Endpoints {
 public:
  struct BusTransfer {  // over the shared bus
    bool to_memory = false, work = false, back = false;
  };

  // `driver` receives the events of the buses.
  Endpoints(const SimulationJob& job, EventQueue& events, BusDriver& driver);
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  // Chunk `id` passes the endpoint with slot or step `step`; `reduces`: a reduction follows. An event, or the driver,
  // reports the end.
  void pass(std::uint32_t id, const Chunk& chunk, std::uint32_t step, bool reduces, const BusTransfer& transfer) {
    if (chunk.current->uses_bus) { return take_bus(id, chunk, step, reduces, transfer); }
    events_.after(chunk.rank, chunk.current->endpoint_ns,
                  {EventKind::endpoint_passed, static_cast<std::uint8_t>(reduces ? 1 : 0), chunk.rank, id, step});
  }

  // The same for `count` slots of a chunk at once, without a bus.
  void pass_slots(std::uint32_t id, const Chunk& chunk, std::uint32_t count, bool reduces) {
    const auto flag = static_cast<std::uint8_t>(reduces ? 1 : 0);
    events_.after(chunk.rank, chunk.current->endpoint_ns, {EventKind::slots_passed, flag, chunk.rank, id, count},
                  join_slots);
  }
  void reduce_slots(std::uint32_t id, const Chunk& chunk, std::uint32_t count) {
    events_.after(chunk.rank, chunk.current->reduction_ns, {EventKind::slots_reduced, 0, chunk.rank, id, count},
                  join_slots);
  }

  // Starts the reduction after pass(); an event reports the end.
  void reduce(std::uint32_t id, const Chunk& chunk, std::uint32_t step);

  void bus_step(std::uint32_t rank, BusDriver::Step step, std::uint8_t port) {
    buses_[rank].handle(step, port, events_.now());
  }

 private:
  void take_bus(std::uint32_t id, const Chunk& chunk, std::uint32_t step, bool reduces, const BusTransfer& transfer);

  const System& system_;
  EventQueue& events_;
  std::vector<Bus> buses_;  // by rank; none without model-shared-bus
};

}  // namespace orrery::simulate
