#include "orrery/simulate/phase_runner.hpp"

#include <algorithm>

#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

void PhaseRunner::start(std::uint32_t id, const ChunkPhase& phase, bool clockwise, std::uint32_t tree_ordinal) {
  Chunk& chunk = chunks_[id];
  chunk.current = &phase;
  chunk.clockwise = clockwise;
  chunk.upper_tree = tree_ordinal % 2 == 0;
  chunk.to_chunk = kNone;
  chunk.position =
      phase.ring.members != nullptr ? chunks_.group(chunk.group).position(chunk.rank) : phase.ring.position(chunk.rank);
  chunk.opened = chunk.sent = chunk.tokens = chunk.received = 0;
  exchanges_.start(id, phase, clockwise);
  if (phase.method == CollectiveAlgorithm::tree) {
    start_tree(id);
  } else if (phase.method == CollectiveAlgorithm::in_switch) {
    start_in_switch(id);
  } else {
    start_window(id);
  }
}

bool PhaseRunner::proceed(std::uint32_t id, std::uint32_t step) {
  if (chunks_[id].current->method == CollectiveAlgorithm::tree) { return tree_step(id, step); }
  return add_token(id);
}

void PhaseRunner::receive(std::uint32_t id, std::uint32_t from) {
  Chunk& chunk = chunks_[id];
  if (chunk.current->method == CollectiveAlgorithm::tree) { return tree_receive(id, from); }
  ++chunk.received;
  open_slot(id);
}

// ---- messages ------------------------------------------------------------------------------------------------------

void PhaseRunner::send(const Chunk& chunk, const Partners& partners, std::uint64_t bytes, std::uint64_t flight) {
  // ASTRA-sim 1.0 sends them, later releases abort.
  if (bytes == 0 && job_.system.inter_dimension != InterDimension::themis) {
    throw Stop{chunk.rank, job_.rank_graphs[chunk.rank].nodes[chunk.node].id,
               "is too small for its algorithm: messages of 0 B"};
  }
  Message message{
      bytes, tag_of(chunk), chunk.rank, partners.to, {Continuation::Kind::none, 0, partners.to_chunk, partners.extra},
      0,     chunk.rank,    kNone};
  if (is_folded_) {
    const bool is_exchange = chunk.current->method == CollectiveAlgorithm::halving_doubling;
    message.expected_bytes = image_source(partners.from, is_exchange);
  }
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
  const bool has_arrived = chunk.channels.balance(from, bytes)++ < 0;
  if (has_arrived) { events_.at(events_.now(), {EventKind::late_chunk_receive, 0, chunk.rank, id, from}); }
}

std::uint32_t PhaseRunner::arrive(const Message& message) {
  const auto group = static_cast<std::uint32_t>((message.tag & ~kChunkTag) >> 32);
  const auto number = static_cast<std::uint32_t>(message.tag);
  if (message.owner.extra != 0) [[unlikely]] { return arrive_in_switch_form(message, group, number); }
  std::uint32_t id = message.owner.ref;
  if (id == kNone || chunks_[id].rank != message.target || chunks_[id].id != number || chunks_[id].group != group) {
    id = chunks_.find_or_make(message.target, group, number);
    if (id == kChunkDone) { return kNone; }  // the message will never be expected
  }
  if (chunks_[id].exchange != kNone) { exchanges_.dissolve(chunks_[id].exchange); }
  if (chunks_[id].channels.balance(message.source, message.bytes)-- > 0) { receive(id, message.source); }
  return kNone;
}

// ---- ring, direct, halving and doubling ----------------------------------------------------------------------------

void PhaseRunner::start_window(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  if (phase.method == CollectiveAlgorithm::ring) {
    const std::uint32_t n = phase.ring.size;
    const std::uint32_t next = phase.ring.at((chunk.position + 1) % n, chunk.rank, chunk.position);
    const std::uint32_t previous = phase.ring.at((chunk.position + n - 1) % n, chunk.rank, chunk.position);
    chunk.to = chunk.clockwise ? next : previous;
    chunk.from = chunk.clockwise ? previous : next;
    chunk.flight_ns = network_.flight_ns(chunk.rank, chunk.to, phase.message);
  }
  open_slots(id, phase.window);
}

void PhaseRunner::open_slots(std::uint32_t id, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) { open_slot(id); }
}

void PhaseRunner::open_slot(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  const std::uint32_t slot = chunk.opened++;
  const bool first_round = slot < phase.period;  // to avoid two divisions
  const std::uint32_t place = first_round ? slot : slot % phase.period;
  const bool even_round = first_round || slot / phase.period % 2 == 0;
  const bool is_reduction =
      phase.collective == Collective::reduce_scatter || (phase.collective == Collective::all_reduce && even_round);
  const bool reduces = place >= phase.window && is_reduction;
  if (chunk.exchange != kNone) { return endpoints_.pass_slots(id, chunk, 1, reduces); }
  const bool back = place >= phase.window && phase.period - place > phase.window;
  endpoints_.pass(id, chunk, slot, reduces, {place < phase.window, reduces, back});
}

bool PhaseRunner::add_token(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  const std::uint32_t others = phase.ring.size - 1;
  ++chunk.tokens;
  const bool second_half = phase.method == CollectiveAlgorithm::direct && phase.collective == Collective::all_reduce &&
                           phase.sends - chunk.sent <= others;
  if (second_half) {
    if (chunk.received < others) {
      return false;
    }  // the second half is sent after all messages of the first have arrived
    for (std::uint32_t i = 0; i < phase.window && use_slot(id); ++i) {}
  } else {
    (void)use_slot(id);
  }
  return chunk.sent == phase.sends && chunk.tokens == phase.window;
}

// As add_token() for each of them, with all messages sent at once. A token and its slot are used together, so that no
// slot is missing.
bool PhaseRunner::add_tokens(std::uint32_t id, std::uint32_t count) {
  Chunk& chunk = chunks_[id];
  if (chunk.exchange == kNone) {
    bool ended = false;
    for (std::uint32_t i = 0; i < count; ++i) { ended = add_token(id); }
    return ended;
  }
  const ChunkPhase& phase = *chunk.current;
  const std::uint32_t others = phase.ring.size - 1;
  std::uint32_t sends = 0;
  for (; count > 0; --count) {
    ++chunk.tokens;
    const std::uint32_t left = phase.sends - chunk.sent - sends;
    const bool second_half = phase.collective == Collective::all_reduce && left <= others;
    if (second_half && chunk.received < others) {
      chunk.tokens += count - 1;
      break;
    }
    const std::uint32_t used = std::min({second_half ? phase.window : 1, left, chunk.tokens});
    chunk.tokens -= used;
    sends += used;
  }
  if (sends != 0) { exchanges_.send(id, sends); }
  return chunk.sent == phase.sends && chunk.tokens == phase.window;
}

void PhaseRunner::receive_late(std::uint32_t id, std::uint32_t count) {
  chunks_[id].received += count;
  open_slots(id, count);
}

void PhaseRunner::arrive_together(std::uint32_t exchange, std::uint32_t position, std::uint32_t count) {
  exchanges_.arrive(
      exchange, position, count,
      [this](std::uint32_t chunk) {
        ++chunks_[chunk].received;
        open_slot(chunk);
      },
      [this](const Message& message) { (void)arrive(message); });
}

// Sends the message of the oldest unused slot; false if it cannot be sent yet.
bool PhaseRunner::use_slot(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  const std::uint32_t slot = chunk.sent;
  if (slot == phase.sends || chunk.tokens == 0 || slot == chunk.opened) { return false; }
  ++chunk.sent;
  --chunk.tokens;
  if (phase.method == CollectiveAlgorithm::ring) {
    if (chunk.to_chunk == kNone) { chunk.to_chunk = is_folded_ ? id : chunks_.find(chunk.to, chunk.group, chunk.id); }
    send(chunk, {chunk.to, chunk.from, chunk.to_chunk}, phase.message, chunk.flight_ns);
    expect(id, chunk.from, phase.message);
    return true;
  }
  const std::uint32_t n = phase.ring.size;
  std::uint32_t to = 0, from = 0;
  std::uint64_t bytes = phase.message;
  if (phase.method == CollectiveAlgorithm::direct) {
    const std::uint32_t step = 1 + slot % (n - 1);
    to = (chunk.position + (chunk.clockwise ? step : n - step)) % n;
    from = (chunk.position + (chunk.clockwise ? n - step : step)) % n;
  } else {
    const Exchange partner = exchange(phase, slot);
    to = from = chunk.position / partner.distance % 2 == 0 ? chunk.position + partner.distance
                                                           : chunk.position - partner.distance;
    bytes = partner.bytes;
  }
  const std::uint32_t target = phase.ring.at(to, chunk.rank, chunk.position);
  const std::uint32_t source = phase.ring.at(from, chunk.rank, chunk.position);
  send(chunk, {target, source, kNone}, bytes, network_.flight_ns(chunk.rank, target, bytes));
  expect(id, source, bytes);
  return true;
}

}  // namespace orrery::simulate
