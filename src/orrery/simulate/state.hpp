// The state of ranks, collectives and chunks in a simulated machine: plain values; machine.hpp has the verbs. Private
// to the room.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "orrery/simulate/channels.hpp"
#include "orrery/simulate/happening.hpp"
#include "orrery/simulate/hash_order.hpp"
#include "orrery/simulate/phase.hpp"
#include "orrery/simulate/program.hpp"

namespace orrery::simulate {

// One chunk of a collective on one rank. It is there from the first message for it, even if the rank has not come to
// its collective yet (collective == kNone).
struct alignas(64) Chunk {
  // Of the phase that runs; what every message touches is on two cache lines.
  const Phase* now = nullptr;
  std::uint64_t flight_ns = 0;  // ring: of a message to `to`, where nothing queues
  std::uint32_t rank = 0, group = 0, id = 0;
  std::uint32_t to = 0, from = 0;  // ring: neighbours
  std::uint32_t to_chunk = kNone;  // ring: where the chunk of `to` was last; see Machine::send_native
  std::uint32_t opened = 0, sent = 0, tokens = 0, got = 0;
  std::uint32_t here = 0;  // position in the ring
  bool clockwise = true;
  bool upper_tree = true;  // double binary tree: which
  bool started = false;
  Channels channels;

  std::uint32_t collective = kNone;
  std::uint32_t ordinal = 0;                    // among the chunks of its collective
  std::uint32_t unborn = 0;                     // not 0: this stands for so many chunks, from `ordinal` on
  std::uint32_t before = kNone, after = kNone;  // in its queue
  std::uint32_t queue = kNone;
  std::uint32_t phase = 0;
  std::uint32_t custom = kNone;  // custom run
};

// One collective node on one rank while it runs.
struct Running {
  std::uint32_t rank = 0, node = 0;
  const Plan* plan = nullptr;
  std::uint64_t count = 0, done = 0;  // chunks
  std::uint32_t group = 0;
  std::uint32_t first_number = 0;  // of its chunks
  std::uint32_t stride = 1;        // every so many chunks start in the same queue
  std::int64_t priority = 0;
  std::vector<std::uint32_t> turns, trees;  // by phase: where the rank's turns stood
};

// Chunks of one rank and dimension that wait for their turn, those that run in front.
struct Queue {
  std::uint32_t first = kNone, last = kNone;
  std::uint32_t waiting = kNone;  // the first that has not started
  std::uint32_t running = 0;
};

// The chunks of a rank within the machine or a group, by number.
struct Stream {
  std::uint32_t base = 0;             // number of chunks[0]
  std::uint32_t next = 0;             // of a group: the number of its next chunk
  std::uint32_t live = 0;             // entries that are chunks
  std::vector<std::uint32_t> chunks;  // kNone: none; kOver: done
};
inline constexpr std::uint32_t kOver = kNone - 1;

struct Rank {
  std::vector<std::uint32_t> parents;                        // by node: that are not over
  std::array<std::vector<std::uint32_t>, kSlots + 1> ready;  // by slot: heaps, the smallest first
  std::vector<std::uint32_t> late;                           // become ready after the issue pass that runs
  std::array<std::uint32_t, kSlots> holds{kNone, kNone, kNone};
  std::uint32_t running = 0;           // nodes
  std::uint32_t active = 0;            // of those, all but receives whose message has not set out
  std::uint32_t over = 0;              // nodes
  std::vector<std::uint64_t> starts;   // by node, where spans are kept
  std::vector<std::uint64_t> set_out;  // by node, of the messages of sends, where tables are kept

  std::uint64_t chunks_made = 0;  // of the machine and of groups
  std::vector<std::uint32_t> turns, trees;
  std::int64_t collectives = 0;

  bool finished = false;
  std::uint64_t finish_ns = 0, exposed_ns = 0;
  std::uint64_t compute_ns = 0, memory_ns = 0, busy_ns = 0, busy_since = 0;
};

struct NodeSpan {
  std::uint32_t rank = 0, node = 0;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t set_out_ns = 0;  // of a send: when its message did, where tables are kept
};

struct GroupState {
  const std::vector<std::uint32_t>* ranks = nullptr;            // nullptr: all
  bool small = false;                                           // smaller than the machine
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // rank, position; ascending
  std::vector<Stream> streams;                                  // by position

  [[nodiscard]] std::uint32_t place(std::uint32_t rank) const;
};

// Messages of nodes and custom collectives with the same address.
struct Box {
  std::uint32_t arrived = 0;
  std::deque<Party> waiting;
};
// The k-th of them to set out is the one that the k-th who expects one gets.
struct Meeting {
  std::uint32_t set_out = 0;    // before anybody expected them
  std::deque<Party> expecting;  // before anything set out
};
struct NoticeBox {
  std::uint32_t arrived = 0;
  std::deque<std::uint32_t> waiting;  // letters
};

struct LinkState {
  std::uint32_t first = kNone, last = kNone;  // letters that wait
  bool busy = false;
};

// What tables are made of; only kept where they were asked for.
struct LinkCount {
  std::uint64_t bytes = 0, messages = 0, busy_ns = 0;
  std::uint64_t queued_ns = 0, since_ns = 0;  // summed over those that wait, until then
  std::uint64_t waiting = 0;
};
struct DimensionCount {
  std::uint64_t bytes = 0, messages = 0;
};

// A custom collective on one rank.
struct CustomRun {
  std::uint32_t chunk = kNone;
  const CustomProgram* program = nullptr;
  std::vector<std::uint32_t> parents;
  HashOrder free;
  std::uint32_t running = 0;
};

}  // namespace orrery::simulate
