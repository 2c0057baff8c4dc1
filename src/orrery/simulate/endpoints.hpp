// The time of a message between the network and the memory of a rank: the endpoint delay, or a trip over the shared bus
// where it is modelled, and a reduction. Private to the room.
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
  struct Trip {  // over the shared bus
    bool to_memory = false, work = false, back = false;
  };

  // `driver` gets the events of the buses.
  Endpoints(const SimulationJob& job, EventQueue& events, BusDriver& driver);
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  // Chunk `id` passes the endpoint with a slot or step; `reduces`: and reduces next. An event, or the driver, reports
  // when it has passed.
  void pass(std::uint32_t id, const Chunk& chunk, std::uint32_t step, bool reduces, const Trip& trip) {
    if (chunk.now->uses_bus) { return take_bus(id, chunk, step, reduces, trip); }
    events_.after(chunk.rank, chunk.now->endpoint_ns,
                  {EventKind::endpoint_passed, static_cast<std::uint8_t>(reduces ? 1 : 0), chunk.rank, id, step});
  }

  // It has passed and reduces; an event reports the end.
  void reduce(std::uint32_t id, const Chunk& chunk, std::uint32_t step);

  void bus_step(std::uint32_t rank, BusDriver::Step step, std::uint8_t port) {
    buses_[rank].happen(step, port, events_.now());
  }

 private:
  void take_bus(std::uint32_t id, const Chunk& chunk, std::uint32_t step, bool reduces, const Trip& trip);

  const System& system_;
  EventQueue& events_;
  std::vector<Bus> buses_;  // by rank; none without model-shared-bus
};

}  // namespace orrery::simulate
