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
  // Of the phase that runs; what every message touches is on two cache lines.
  const ChunkPhase* now = nullptr;
  std::uint64_t flight_ns = 0;  // ring: of a message to `to`, where nothing queues
  std::uint32_t rank = 0, group = 0, id = 0;
  std::uint32_t to = 0, from = 0;  // ring: neighbours
  std::uint32_t to_chunk = kNone;  // ring: where the chunk of `to` was last, which spares a search on arrival
  std::uint32_t opened = 0, sent = 0, tokens = 0, got = 0;
  std::uint32_t here = 0;  // position in the ring
  bool clockwise = true;
  bool upper_tree = true;  // double binary tree: which
  bool started = false;
  Channels channels;

  std::uint32_t collective = kNone;
  std::uint32_t node = kNone;                   // of the rank: that of the collective
  std::uint32_t ordinal = 0;                    // among the chunks of its collective
  std::uint32_t not_created = 0;                // not 0: a placeholder for so many chunks, from `ordinal` on
  std::uint32_t before = kNone, after = kNone;  // in its queue
  std::uint32_t queue = kNone;
  std::uint32_t phase = 0;
  std::int64_t priority = 0;  // its collective's
};

// One collective node on one rank while it runs.
struct ActiveCollective {
  std::uint32_t rank = 0, node = 0;
  const PhaseSequence* sequence = nullptr;
  std::uint64_t count = 0, done = 0;  // chunks
  std::uint32_t group = 0;
  std::uint32_t first_number = 0;  // of its chunks
  std::uint32_t stride = 1;        // every so many chunks start in the same queue
  std::int64_t priority = 0;
  std::vector<std::uint32_t> first_turn, first_tree;  // by phase: where the rank's round robins stood
};

}  // namespace orrery::simulate
