// Chunks of collectives, and the collectives that they belong to: plain values. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/simulate/channels.hpp"
#include "orrery/simulate/phase.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// One chunk of a collective on one rank. It exists from the first message for it, even if the rank has not reached
// its collective yet (collective == kNone).
struct alignas(64) Chunk {
  // The current phase. The members that every message accesses are on two cache lines.
  const ChunkPhase* current = nullptr;
  std::uint64_t flight_ns = 0;  // ring: from departure to arrival at `to` without contention
  std::uint32_t rank = 0, group = 0, id = 0;
  std::uint32_t to = 0, from = 0;  // ring: neighbours
  std::uint32_t to_chunk = kNone;  // ring: the last known chunk of `to`, to avoid a search on arrival
  std::uint32_t opened = 0, sent = 0, tokens = 0, received = 0;
  std::uint32_t position = 0;  // in the ring
  bool clockwise = true;
  bool upper_tree = true;  // double binary tree: which of the two trees
  bool started = false;
  Channels channels;

  std::uint32_t collective = kNone;
  std::uint32_t node = kNone;                   // the node of the collective on the rank
  std::uint32_t ordinal = 0;                    // among the chunks of its collective
  std::uint32_t not_created = 0;                // not 0: placeholder for this number of chunks, from `ordinal` on
  std::uint32_t before = kNone, after = kNone;  // in its queue
  std::uint32_t queue = kNone;
  std::uint32_t phase = 0;
  std::uint32_t exchange = kNone;  // direct_exchanges.hpp
  std::int64_t priority = 0;       // of its collective
  std::uint64_t bytes = 0;         // at the start of its phase, where queues sort by it
  bool by_bytes = false;           // it is sorted by them
};

// One collective node on one rank while it runs.
struct ActiveCollective {
  std::uint32_t rank = 0, node = 0;
  const PhaseSequence* sequence = nullptr;
  std::uint64_t count = 0, done = 0;  // chunks
  std::uint32_t group = 0;
  std::uint32_t first_number = 0;  // number of its first chunk
  std::uint32_t stride = 1;        // chunks whose numbers differ by this start in the same queue
  std::int64_t priority = 0;
  // Round-robin counters of the rank at the start: by phase; by dimension if chunks choose their order.
  std::vector<std::uint32_t> first_queue, first_tree;
  std::vector<const PhaseSequence*> orders;  // by chunk, if chunks choose the order of dimensions

  [[nodiscard]] const PhaseSequence& sequence_of(std::uint32_t chunk) const {
    return orders.empty() ? *sequence : *orders[chunk];
  }
  [[nodiscard]] std::uint32_t counter_of(std::uint32_t phase, const ChunkPhase& what) const {
    return orders.empty() ? phase : what.dimension;
  }
};

}  // namespace orrery::simulate
