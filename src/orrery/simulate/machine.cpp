#include "orrery/simulate/machine.hpp"

#include <algorithm>

namespace orrery::simulate {

namespace {

constexpr std::size_t kTurns = 3;  // kinds of turns a dimension's queues are taken in

std::size_t link_count(const Network& network) {
  const NetworkDimension& dimension = network.dimensions.front();
  return dimension.topology == Topology::FullyConnected ? std::size_t{dimension.ranks} * dimension.ranks
                                                        : std::size_t{dimension.ranks} * 2;
}

void fetch(const Chunk* chunk) {
  __builtin_prefetch(chunk);
  __builtin_prefetch(reinterpret_cast<const char*>(chunk) + 64);  // NOLINT(*-reinterpret-cast)
}

}  // namespace

std::uint32_t GroupState::place(std::uint32_t rank) const {
  if (ranks == nullptr) { return rank; }
  return std::lower_bound(places.begin(), places.end(), std::pair{rank, 0U})->second;
}

Machine::Machine(const Job& job) : job_(job), count_(job.network.ranks()), kernel_(count_), ranks_(count_) {
  const std::size_t dimensions = job.network.dimensions.size();
  const std::uint32_t queues = job.system.queues_per_dimension;
  width_ = (job.system.active_chunks + queues - 1) / queues;
  queues_.resize(count_ * dimensions * queues);
  for (std::uint32_t i = 0; i < count_; ++i) {
    Rank& rank = ranks_[i];
    rank.turns.assign(dimensions * kTurns, 0);
    rank.trees.assign(dimensions * kCollectives, 0);
    const Program& program = job.programs[i];
    if (job.spans) { rank.starts.assign(program.nodes.size(), 0); }
    if (job.tables) { rank.set_out.assign(program.nodes.size(), 0); }
    rank.parents.reserve(program.nodes.size());
    for (const Work& work : program.nodes) { rank.parents.push_back(work.parents); }
  }
  groups_.resize(job.groups.size() + 1);
  groups_[kWholeMachine].streams.resize(count_);
  for (std::uint32_t i = 0; i < job.groups.size(); ++i) {
    GroupState& group = groups_[i + 1];
    group.ranks = &job.groups[i].ranks;
    group.small = group.ranks->size() < count_;
    for (std::uint32_t place = 0; place < group.ranks->size(); ++place) {
      group.places.emplace_back((*group.ranks)[place], place);
    }
    std::sort(group.places.begin(), group.places.end());
    group.streams.resize(group.ranks->size());
  }
  for (const NetworkDimension& dimension : job.network.dimensions) {
    bytes_per_ns_.push_back(dimension.bytes_per_ns());
  }
  if (job.backend == Backend::congestion_aware) { links_.resize(link_count(job.network)); }
  if (job.tables) {
    link_counts_.resize(links_.size());
    dimension_counts_.resize(dimensions);
  }
  servers_.resize(job.memory.servers(count_));
  if (job.system.bus) {
    BusDriver& driver = *this;
    for (std::uint32_t i = 0; i < count_; ++i) {
      buses_.emplace_back(*job.system.bus, job.system.reduction_delay_ns, i, driver);
    }
  }
}

void Machine::run() {
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const Program& program = job_.programs[rank];
    for (std::uint32_t node = 0; node < program.nodes.size(); ++node) {
      if (program.nodes[node].parents == 0) { make_ready(rank, node); }
    }
    issue(rank);
    end_check(rank);
  }
  kernel_.run([this](const Event& event) { happen(event); }, [this](const Event& event) { look_ahead(event); });
}

// Fetches what the event after this one will touch; most of a large machine is far from the processor.
void Machine::look_ahead(const Event& event) const {
  switch (event.what) {
    case Happening::endpoint:
    case Happening::reduced:
    case Happening::received: fetch(&chunks_[event.ref]); break;
    case Happening::arrival: {
      const std::uint32_t chunk = letters_[event.ref].party.ref;
      if (letters_[event.ref].party.kind == Party::Kind::nobody && chunk < chunks_.made()) { fetch(&chunks_[chunk]); }
      break;
    }
    case Happening::hop:
    case Happening::link_free:
    case Happening::received_by:
    case Happening::begin:
    case Happening::node_over:
    case Happening::memory_over:
    case Happening::server_free:
    case Happening::custom_over:
    case Happening::bus_step: break;
  }
}

void Machine::happen(const Event& event) {
  switch (event.what) {
    case Happening::endpoint: return endpoint_passed(event.ref, event.extra, event.flag != 0);
    case Happening::reduced: return proceed(event.ref, event.extra);
    case Happening::arrival: return arrive(event.ref);
    case Happening::hop: return hop(event.ref);
    case Happening::link_free: return free_link(event.ref);
    case Happening::received: return receive(event.ref, event.extra);
    case Happening::received_by:
      return tell({static_cast<Party::Kind>(event.flag), event.rank, event.ref, event.extra});
    case Happening::begin: return depart(event.ref);
    case Happening::node_over:
    case Happening::memory_over: return complete(event.rank, event.ref);
    case Happening::server_free:
      if (const auto next = servers_[event.ref].leave()) { serve(*next, event.ref); }
      return;
    case Happening::custom_over: return custom_step_over(event.ref, event.extra);
    case Happening::bus_step:
      return buses_[event.rank].happen(static_cast<Step>(event.extra), event.flag, kernel_.now());
  }
}

void Machine::later(std::uint32_t rank, std::uint64_t delay_ns, Step step, std::uint8_t port) {
  kernel_.after(rank, delay_ns, {Happening::bus_step, port, rank, 0, static_cast<std::uint32_t>(step)});
}

void Machine::delivered(const BusRequest& request) { endpoint_passed(request.chunk, request.step, request.reduce); }

}  // namespace orrery::simulate
