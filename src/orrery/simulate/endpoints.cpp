#include "orrery/simulate/endpoints.hpp"

namespace orrery::simulate {

Endpoints::Endpoints(const SimulationJob& job, EventQueue& events, BusDriver& driver)
    : system_(job.system), events_(events) {
  if (!job.system.bus) { return; }
  const std::uint32_t ranks = job.network.ranks();
  for (std::uint32_t i = 0; i < ranks; ++i) {
    buses_.emplace_back(*job.system.bus, job.system.reduction_delay_ns, i, driver);
  }
}

void Endpoints::take_bus(std::uint32_t id, const Chunk& chunk, std::uint32_t step, bool reduces,
                         const BusTransfer& transfer) {
  const ChunkPhase& phase = *chunk.current;
  BusRequest request;
  request.chunk = id;
  request.step = step;
  request.reduce = reduces;
  request.bytes = phase.method == CollectiveAlgorithm::halving_doubling ? exchange(phase, step).bytes : phase.message;
  request.work = transfer.work;
  request.back = transfer.back;
  buses_[chunk.rank].start(request, transfer.to_memory, events_.now());
}

void Endpoints::reduce(std::uint32_t id, const Chunk& chunk, std::uint32_t step) {
  const ChunkPhase& phase = *chunk.current;
  const std::uint64_t time = phase.method == CollectiveAlgorithm::halving_doubling
                                 ? reduction_ns(system_, exchange(phase, step).bytes)
                                 : phase.reduction_ns;
  events_.after(chunk.rank, time, {EventKind::reduced, 0, chunk.rank, id, step});
}

}  // namespace orrery::simulate
