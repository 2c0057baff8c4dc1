#include "orrery/simulate/direct_exchanges.hpp"

namespace orrery::simulate {

// With more dimensions the time of a message depends on its ends, on a ring on their distance; links, tables of links,
// ready-to-receive messages and the shared bus handle single messages.
DirectExchanges::DirectExchanges(const SimulationJob& job, EventQueue& events, ChunkRegistry& chunks,
                                 MessageNetwork& network)
    : job_(job),
      events_(events),
      chunks_(chunks),
      network_(network),
      possible_(!is_folded(job) && job.backend == Backend::congestion_unaware && job.network.dimensions.size() == 1 &&
                !hardware::has_neighbours_only(job.network.dimensions.front().wiring) && !job.system.rendezvous &&
                !job.system.bus && !job.tables && !job.explain) {}

bool DirectExchanges::can_hold(const ChunkPhase& phase) const {
  return possible_ && phase.method == CollectiveAlgorithm::direct && phase.message != 0;
}

// ---- start ---------------------------------------------------------------------------------------------------------

void DirectExchanges::start(std::uint32_t id, const ChunkPhase& phase, bool clockwise) {
  Chunk& chunk = chunks_[id];
  chunk.exchange = kNone;
  if (!possible_) { return; }
  const auto found = running_.find(key(chunk.group, chunk.id));
  if (found != running_.end()) {
    Exchange& exchange = exchanges_[found->second];
    if (exchange.phase != &phase || exchange.clockwise != clockwise || !chunk.channels.is_empty()) {
      return dissolve(found->second);
    }
    chunk.exchange = found->second;
    exchange.members[chunk.position].chunk = id;
  } else if (can_hold(phase) && is_unused(phase, chunk)) {
    const std::uint32_t made = make(chunk, phase, clockwise);
    if (made == kNone) { return; }
    chunk.exchange = made;
    exchanges_[made].members[chunk.position].chunk = id;
  }
}

// No member runs another phase with a chunk of the same number, and no message for the chunk has arrived.
bool DirectExchanges::is_unused(const ChunkPhase& phase, const Chunk& own) const {
  if (!own.channels.is_empty()) { return false; }
  for (std::uint32_t i = 0; i < phase.ring.size; ++i) {
    if (i == own.position) { continue; }
    const std::uint32_t other = chunks_.find(phase.ring.at(i, own.rank, own.position), own.group, own.id);
    if (other != kNone && chunks_[other].started) { return false; }
  }
  return true;
}

std::uint32_t DirectExchanges::make(const Chunk& chunk, const ChunkPhase& phase, bool clockwise) {
  const std::uint32_t next = (chunk.position + 1) % phase.ring.size;
  const std::uint32_t neighbour = phase.ring.at(next, chunk.rank, chunk.position);
  const std::uint64_t flight = network_.flight_ns(chunk.rank, neighbour, phase.message);
  if (flight == 0) { return kNone; }  // messages could arrive between those that are sent at once
  const std::uint32_t number = exchanges_.take();
  Exchange& exchange = exchanges_[number];
  exchange.phase = &phase;
  exchange.clockwise = clockwise;
  exchange.dissolved = false;
  exchange.group = chunk.group;
  exchange.number = chunk.id;
  exchange.first_rank = phase.ring.at(0, chunk.rank, chunk.position);
  exchange.flight_ns = flight;
  exchange.to_arrive = std::uint64_t{phase.ring.size} * phase.sends;
  exchange.in_flight = 0;
  exchange.members.assign(phase.ring.size, Member());
  running_.emplace(key(chunk.group, chunk.id), number);
  return number;
}

// ---- messages ------------------------------------------------------------------------------------------------------

void DirectExchanges::send(std::uint32_t id, std::uint32_t count) {
  Chunk& chunk = chunks_[id];
  Exchange& exchange = exchanges_[chunk.exchange];
  const std::uint32_t end = chunk.sent + count;
  network_.depart_together(message(exchange, chunk.position, chunk.sent), count);
  events_.at(events_.now() + exchange.flight_ns,
             {EventKind::direct_arrivals, 0, chunk.position, chunk.exchange, count});
  ++exchange.in_flight;
  const std::uint32_t late = late_messages(exchange, chunk, end);
  chunk.sent = end;
  if (late != 0) { events_.at(events_.now(), {EventKind::late_chunk_receives, 0, chunk.rank, id, late}); }
}

// How many of the messages that the chunk receives in its next slots, up to `end`, have arrived.
std::uint32_t DirectExchanges::late_messages(const Exchange& exchange, const Chunk& chunk, std::uint32_t end) const {
  std::uint32_t late = 0;
  const auto n = static_cast<std::uint32_t>(exchange.members.size());
  const std::uint32_t step = exchange.clockwise ? n - 1 : 1;
  std::uint32_t at = source(exchange, chunk.position, chunk.sent);
  for (std::uint32_t slot = chunk.sent; slot < end; ++slot) {
    if (at == chunk.position) { at = at + step < n ? at + step : at + step - n; }
    late += exchange.members[at].arrived > slot ? 1 : 0;
    at = at + step < n ? at + step : at + step - n;
  }
  return late;
}

Message DirectExchanges::message(const Exchange& exchange, std::uint32_t position, std::uint32_t slot) const {
  const ChunkPhase& phase = *exchange.phase;
  const std::uint32_t from = phase.ring.at(position, exchange.first_rank, 0);
  const std::uint32_t to = phase.ring.at(target(exchange, position, slot), exchange.first_rank, 0);
  const std::uint64_t tag = kChunkTag | key(exchange.group, exchange.number);
  return {phase.message, tag, from, to, {Continuation::Kind::none, 0, kNone, 0}, 0, from, kNone};
}

// ---- the other way -------------------------------------------------------------------------------------------------

void DirectExchanges::dissolve(std::uint32_t number) {
  Exchange& exchange = exchanges_[number];
  exchange.dissolved = true;
  running_.erase(key(exchange.group, exchange.number));
  for (std::uint32_t i = 0; i < exchange.members.size(); ++i) { move_balances(number, i); }
  for (const Member& member : exchange.members) {
    if (member.chunk != kNone && chunks_[member.chunk].exchange == number) { chunks_[member.chunk].exchange = kNone; }
  }
  if (exchange.in_flight == 0) { release(number); }
}

void DirectExchanges::dissolve_all() {
  while (!running_.empty()) { dissolve(running_.begin()->second); }
}

// The balances of a receiver, which may not have started: expected minus arrived messages of each sender.
void DirectExchanges::move_balances(std::uint32_t number, std::uint32_t receiver) {
  const Exchange& exchange = exchanges_[number];
  const ChunkPhase& phase = *exchange.phase;
  const std::uint32_t rank = phase.ring.at(receiver, exchange.first_rank, 0);
  std::uint32_t id = exchange.members[receiver].chunk;
  const bool has_started = id != kNone;
  if (has_started && chunks_[id].exchange != number) { return; }  // it has ended, and received everything
  const std::uint32_t sent = has_started ? chunks_[id].sent : 0;
  for (std::uint32_t slot = 0; slot < phase.sends; ++slot) {
    const std::uint32_t from = source(exchange, receiver, slot);
    const int expected = sent > slot ? 1 : 0;
    const int arrived = exchange.members[from].arrived > slot ? 1 : 0;
    if (expected == arrived) { continue; }
    if (id == kNone) { id = chunks_.find_or_make(rank, exchange.group, exchange.number); }
    if (id == kChunkDone) { return; }
    chunks_[id].channels.balance(phase.ring.at(from, exchange.first_rank, 0), phase.message) += expected - arrived;
  }
}

void DirectExchanges::release(std::uint32_t number) {
  Exchange& exchange = exchanges_[number];
  if (!exchange.dissolved) { running_.erase(key(exchange.group, exchange.number)); }
  for (const Member& member : exchange.members) {
    if (member.chunk != kNone && chunks_[member.chunk].exchange == number) { chunks_[member.chunk].exchange = kNone; }
  }
  exchange.members.clear();
  exchange.members.shrink_to_fit();
  exchanges_.give_back(number);
}

}  // namespace orrery::simulate
