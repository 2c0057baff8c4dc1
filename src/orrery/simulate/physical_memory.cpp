#include "orrery/simulate/physical_memory.hpp"

#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

namespace {

std::uint32_t server_of(const SimulationJob& job, std::uint32_t rank) { return job.memory.server(rank).value_or(rank); }

}  // namespace

PhysicalMemory::PhysicalMemory(const SimulationJob& job, PhysicalRounds& rounds, PhysicalNodes& nodes)
    : job_(job), rounds_(rounds), nodes_(nodes) {
  const auto ranks = static_cast<std::uint32_t>(job.rank_graphs.size());
  if (job.memory.arrangement == memory::Arrangement::NO_MEMORY_EXPANSION || ranks == 0) { return; }
  servers_.resize(server_of(job, ranks - 1) + 1);
}

void PhysicalMemory::start(std::uint32_t rank, std::uint32_t node) {
  const std::uint32_t id = requests_.take();
  Request& request = requests_[id];
  request = {rank, node, server_of(job_, rank), 0};
  constexpr std::uint64_t kBytesPerSecond = 1'000'000'000;
  if (job_.memory.bytes_per_ns > kMostTime / kBytesPerSecond) { throw TooLong{}; }
  request.alone =
      Rate(job_.memory.bytes_per_ns * kBytesPerSecond).picoseconds(job_.rank_graphs[rank].nodes[node].amount);
  if (job_.memory.latency_ns > kMostTime / kPicosecondsPerNs - rounds_.now() / kPicosecondsPerNs) { throw TooLong{}; }
  rounds_.at(rounds_.now() + job_.memory.latency_ns * kPicosecondsPerNs, {PhysicalEventKind::memory_request, id, 0});
}

void PhysicalMemory::arrive(std::uint32_t id) {
  const Request& request = requests_[id];
  servers_[request.server].server.arrive(rounds_.now(), id, request.alone);
  expect_next(request.server);
}

void PhysicalMemory::expect_next(std::uint32_t number) {
  Server& server = servers_[number];
  ++server.version;
  if (const auto next = server.server.next()) {
    if (*next > kMostTime) { throw TooLong{}; }
    rounds_.at(*next, {PhysicalEventKind::memory_end, number, server.version});
  }
}

void PhysicalMemory::leave(std::uint32_t number, std::uint32_t version) {
  if (servers_[number].version != version) { return; }
  for (const std::uint32_t id : servers_[number].server.leave(rounds_.now())) {
    nodes_.end_later(requests_[id].rank, requests_[id].node);
    requests_.give_back(id);
  }
  expect_next(number);
}

}  // namespace orrery::simulate
