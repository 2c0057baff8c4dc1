#include "orrery/simulate/phase_runner.hpp"

#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

namespace {

std::uint64_t tag_of(const Chunk& chunk) { return kChunkTag | (std::uint64_t{chunk.group} << 32) | chunk.id; }

}  // namespace

void PhaseRunner::start(std::uint32_t id, const ChunkPhase& phase, bool clockwise, std::uint32_t tree_turn) {
  Chunk& chunk = chunks_[id];
  chunk.now = &phase;
  chunk.clockwise = clockwise;
  chunk.upper_tree = tree_turn % 2 == 0;
  chunk.to_chunk = kNone;
  chunk.here =
      phase.ring.members != nullptr ? chunks_.group(chunk.group).position(chunk.rank) : phase.ring.position(chunk.rank);
  chunk.opened = chunk.sent = chunk.tokens = chunk.got = 0;
  if (phase.method == CollectiveAlgorithm::tree) {
    start_tree(id);
  } else {
    start_window(id);
  }
}

bool PhaseRunner::proceed(std::uint32_t id, std::uint32_t step) {
  if (chunks_[id].now->method == CollectiveAlgorithm::tree) { return tree_step(id, step); }
  return token(id);
}

void PhaseRunner::receive(std::uint32_t id, std::uint32_t from) {
  Chunk& chunk = chunks_[id];
  if (chunk.now->method == CollectiveAlgorithm::tree) { return tree_receive(id, from); }
  ++chunk.got;
  open_slot(id);
}

// ---- messages ------------------------------------------------------------------------------------------------------

// `to_chunk`: which chunk this is at the receiver's, if that is known; it spares the search on arrival.
void PhaseRunner::send(const Chunk& chunk, std::uint32_t to, std::uint64_t bytes, std::uint64_t flight,
                       std::uint32_t to_chunk) {
  if (bytes == 0) {
    throw Stop{chunk.rank, job_.rank_graphs[chunk.rank].nodes[chunk.node].id,
               "is too small for its algorithm: messages of 0 B"};
  }
  const Message message{bytes, tag_of(chunk), chunk.rank, to, {Continuation::Kind::none, 0, to_chunk, 0},
                        0,     chunk.rank,    kNone};
  if (messenger_.rendezvous()) { return messenger_.send(message); }
  network_.depart(network_.add(message), flight);
}

void PhaseRunner::expect(std::uint32_t id, std::uint32_t from, std::uint64_t bytes) {
  if (!messenger_.rendezvous()) { return post(id, from, bytes); }
  const Chunk& chunk = chunks_[id];
  messenger_.announce({Continuation::Kind::chunk, chunk.rank, id, from}, {tag_of(chunk), bytes, from, chunk.rank});
}

void PhaseRunner::post(std::uint32_t id, std::uint32_t from, std::uint64_t bytes) {
  Chunk& chunk = chunks_[id];
  const bool is_there = chunk.channels.balance(from, bytes)++ < 0;
  if (is_there) { events_.at(events_.now(), {EventKind::late_chunk_receive, 0, chunk.rank, id, from}); }
}

void PhaseRunner::arrive(const Message& message) {
  const auto group = static_cast<std::uint32_t>((message.tag & ~kChunkTag) >> 32);
  const auto number = static_cast<std::uint32_t>(message.tag);
  std::uint32_t id = message.owner.ref;
  if (id == kNone || chunks_[id].rank != message.target || chunks_[id].id != number || chunks_[id].group != group) {
    id = chunks_.find_or_make(message.target, group, number);
    if (id == kChunkDone) { return; }  // nobody will ever expect the message
  }
  if (chunks_[id].channels.balance(message.source, message.bytes)-- > 0) { receive(id, message.source); }
}

// ---- ring, direct, halving and doubling ----------------------------------------------------------------------------

void PhaseRunner::start_window(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.now;
  if (phase.method == CollectiveAlgorithm::ring) {
    const std::uint32_t n = phase.ring.size;
    const std::uint32_t next = phase.ring.at((chunk.here + 1) % n, chunk.rank, chunk.here);
    const std::uint32_t previous = phase.ring.at((chunk.here + n - 1) % n, chunk.rank, chunk.here);
    chunk.to = chunk.clockwise ? next : previous;
    chunk.from = chunk.clockwise ? previous : next;
    chunk.flight_ns = network_.flight_ns(chunk.rank, chunk.to, phase.message);
  }
  const std::uint32_t window = phase.window;
  for (std::uint32_t i = 0; i < window; ++i) { open_slot(id); }
}

void PhaseRunner::open_slot(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.now;
  const std::uint32_t slot = chunk.opened++;
  const bool first_round = slot < phase.period;  // spares two divisions
  const std::uint32_t place = first_round ? slot : slot % phase.period;
  const bool even_round = first_round || slot / phase.period % 2 == 0;
  const bool is_reduction =
      phase.collective == Collective::reduce_scatter || (phase.collective == Collective::all_reduce && even_round);
  const bool reduces = place >= phase.window && is_reduction;
  const bool back = place >= phase.window && phase.period - place > phase.window;
  endpoints_.pass(id, chunk, slot, reduces, {place < phase.window, reduces, back});
}

bool PhaseRunner::token(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.now;
  const std::uint32_t others = phase.ring.size - 1;
  ++chunk.tokens;
  const bool second_half = phase.method == CollectiveAlgorithm::direct && phase.collective == Collective::all_reduce &&
                           phase.sends - chunk.sent <= others;
  if (second_half) {
    if (chunk.got < others) { return false; }  // nothing goes out again before all have come in
    for (std::uint32_t i = 0; i < phase.window && emit(id); ++i) {}
  } else {
    (void)emit(id);
  }
  return chunk.sent == phase.sends && chunk.tokens == phase.window;
}

// The oldest slot that has not been used; false when nothing can go.
bool PhaseRunner::emit(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.now;
  const std::uint32_t slot = chunk.sent;
  if (slot == phase.sends || chunk.tokens == 0 || slot == chunk.opened) { return false; }
  ++chunk.sent;
  --chunk.tokens;
  if (phase.method == CollectiveAlgorithm::ring) {
    if (chunk.to_chunk == kNone) { chunk.to_chunk = chunks_.find(chunk.to, chunk.group, chunk.id); }
    send(chunk, chunk.to, phase.message, chunk.flight_ns, chunk.to_chunk);
    expect(id, chunk.from, phase.message);
    return true;
  }
  const std::uint32_t n = phase.ring.size;
  std::uint32_t to = 0, from = 0;
  std::uint64_t bytes = phase.message;
  if (phase.method == CollectiveAlgorithm::direct) {
    const std::uint32_t step = 1 + slot % (n - 1);
    to = (chunk.here + (chunk.clockwise ? step : n - step)) % n;
    from = (chunk.here + (chunk.clockwise ? n - step : step)) % n;
  } else {
    const Exchange with = exchange(phase, slot);
    to = from = chunk.here / with.distance % 2 == 0 ? chunk.here + with.distance : chunk.here - with.distance;
    bytes = with.bytes;
  }
  const std::uint32_t target = phase.ring.at(to, chunk.rank, chunk.here);
  send(chunk, target, bytes, network_.flight_ns(chunk.rank, target, bytes));
  expect(id, phase.ring.at(from, chunk.rank, chunk.here), bytes);
  return true;
}

}  // namespace orrery::simulate
