// Ring, direct, halving and doubling: one automaton with three sets of figures (phase.cpp).
//
// A chunk opens slots 0, 1, 2, …: so many at first, and one more for every message that it gets. An open slot costs a
// delay and then gives a token; a token pays for one message out and one in.
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

void Machine::start_window(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  if (phase.method == CollectiveAlgorithm::ring) {
    const std::uint32_t n = phase.ring.size;
    const std::uint32_t next = phase.ring.at((chunk.here + 1) % n, chunk.rank, chunk.here);
    const std::uint32_t previous = phase.ring.at((chunk.here + n - 1) % n, chunk.rank, chunk.here);
    chunk.to = chunk.clockwise ? next : previous;
    chunk.from = chunk.clockwise ? previous : next;
    chunk.flight_ns = flight_ns(chunk.rank, chunk.to, phase.message);
  }
  const std::uint32_t window = phase.window;
  for (std::uint32_t i = 0; i < window; ++i) { open_slot(id); }
}

void Machine::open_slot(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  const std::uint32_t slot = chunk.opened++;
  const bool first_round = slot < phase.period;  // spares two divisions
  const std::uint32_t place = first_round ? slot : slot % phase.period;
  const bool even_round = first_round || slot / phase.period % 2 == 0;
  const bool is_reduction =
      phase.collective == Collective::reduce_scatter || (phase.collective == Collective::all_reduce && even_round);
  const bool reduce = place >= phase.window && is_reduction;
  const bool back = place >= phase.window && phase.period - place > phase.window;
  delay(id, slot, reduce, {place < phase.window, reduce, back});
}

void Machine::token(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  const std::uint32_t others = phase.ring.size - 1;
  ++chunk.tokens;
  const bool second_half = phase.method == CollectiveAlgorithm::direct && phase.collective == Collective::all_reduce &&
                           phase.sends - chunk.sent <= others;
  if (second_half) {
    if (chunk.got < others) { return; }  // nothing goes out again before all have come in
    for (std::uint32_t i = 0; i < phase.window && emit(id); ++i) {}
  } else {
    (void)emit(id);
  }
  if (chunk.sent == phase.sends && chunk.tokens == phase.window) { phase_over(id); }
}

// The oldest slot that has not been used; false when nothing can go.
bool Machine::emit(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  const std::uint32_t slot = chunk.sent;
  if (slot == phase.sends || chunk.tokens == 0 || slot == chunk.opened) { return false; }
  ++chunk.sent;
  --chunk.tokens;
  if (phase.method == CollectiveAlgorithm::ring) {
    if (chunk.to_chunk == kNone) { chunk.to_chunk = known_chunk(chunk.to, chunk.group, chunk.id); }
    send_native(chunk, chunk.to, phase.message, chunk.flight_ns, chunk.to_chunk);
    expect_native(id, chunk.from, phase.message);
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
  send_native(chunk, target, bytes, flight_ns(chunk.rank, target, bytes));
  expect_native(id, phase.ring.at(from, chunk.rank, chunk.here), bytes);
  return true;
}

}  // namespace orrery::simulate
