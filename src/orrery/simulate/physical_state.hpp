// The state of ranks, collectives and messages in a physical machine: plain values; physical_machine.hpp has the verbs.
// Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "orrery/simulate/custom_program.hpp"
#include "orrery/simulate/physical_links.hpp"
#include "orrery/simulate/physical_plan.hpp"
#include "orrery/simulate/program.hpp"

namespace orrery::simulate {

// What a rank can be doing; several at once.
enum class Activity : std::uint8_t { compute, comm, memory, host, waiting };
inline constexpr std::size_t kActivities = 5;

struct PhysicalRank {
  std::vector<std::uint32_t> parents;               // by node: that are not over
  std::array<std::vector<std::uint32_t>, 2> ready;  // of a slot (host, accelerator): heaps, the smallest first
  std::vector<std::uint32_t> free;                  // ready, and need no slot
  std::array<std::uint32_t, 2> holds{kNone, kNone};
  std::vector<std::uint32_t> ended;  // in this round
  bool is_dirty = false;
  std::uint32_t over = 0;             // nodes
  std::int32_t started = 0;           // communications
  std::vector<bool> runs;             // by node
  std::vector<std::uint64_t> starts;  // by node, where spans are kept

  std::array<std::uint32_t, kActivities> active{};
  std::array<std::uint64_t, std::size_t{1} << kActivities> time{};  // spent, by set of activities
  std::uint64_t since = 0;
  std::uint64_t finish = 0;

  [[nodiscard]] std::size_t activities() const {
    std::size_t set = 0;
    for (std::size_t i = 0; i < kActivities; ++i) { set |= static_cast<std::size_t>(active[i] > 0 ? 1 : 0) << i; }
    return set;
  }
};

// A chunk of a collective at one of its seats.
struct Seat {
  std::uint32_t in = 0;        // all that is received in steps before is there, and reduced
  std::uint32_t got = 0;       // of step `in`
  std::uint32_t out = 0;       // all of the steps before is sent
  std::uint32_t held = kNone;  // packets that came before their step, or before the rank
  std::uint32_t not_left = 0;  // packets that have not got a link yet
  bool done = false;
  std::uint64_t left_at = 0;  // the last packet has left its sender
};

// A rank in a collective.
struct Joined {
  std::uint32_t node = kNone;
  std::int32_t priority = 0;
  std::uint32_t chunks_left = 0;
};

// The k-th collective of a kind, size and group on every rank of the group.
struct PhysicalCollective {
  Work work;  // of the first rank that has it
  std::uint32_t ranks = 0;
  std::uint32_t has = 0;              // ranks whose graph has it
  std::uint32_t begun = 0, over = 0;  // ranks
  std::string custom;
  const PhysicalPlan* plan = nullptr;       // nullptr before the first rank comes, and of custom ones
  const PhysicalPlan* last_plan = nullptr;  // of the last chunk
  std::uint32_t chunks = 0;
  std::vector<Joined> joined;  // by position, then switches
  std::vector<Seat> seats;     // by chunk, then seat
  std::uint64_t first_start = 0, last_start = 0, end = 0;

  [[nodiscard]] const PhysicalPlan& plan_of(std::uint32_t chunk) const {
    return chunk + 1 == chunks ? *last_plan : *plan;
  }
};

struct PhysicalGroup {
  const std::vector<std::uint32_t>* ranks = nullptr;            // nullptr: all
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // rank, position; ascending
  std::vector<Extent> extents;
  bool is_line = false;  // and no grid of the network's dimensions

  [[nodiscard]] std::uint32_t rank(std::uint32_t position) const {
    return ranks == nullptr ? position : (*ranks)[position];
  }
  [[nodiscard]] std::uint32_t position(std::uint32_t rank) const;
};

// Who sends or receives a message that is not a collective's.
struct Correspondent {
  enum class Kind : std::uint8_t { nobody, node, custom };
  Kind kind = Kind::nobody;
  std::uint32_t rank = 0;
  std::uint32_t ref = 0;  // node; custom run
  std::uint32_t step = 0;
};

// What such a message is matched by.
struct Envelope {
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint32_t source = 0, target = 0;
  std::uint32_t scope = 0;  // 1 + the custom collective that it belongs to

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

struct EnvelopeHash {
  std::size_t operator()(const Envelope& envelope) const {
    std::uint64_t mixed = envelope.tag * 0x9E3779B97F4A7C15U ^ (envelope.bytes + envelope.scope);
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9U;
    mixed ^= (std::uint64_t{envelope.source} << 32) | envelope.target;
    return (mixed ^ (mixed >> 31)) * 0x94D049BB133111EBU;
  }
};

struct PhysicalLetter {
  Envelope envelope;
  Correspondent sender, receiver;
  Order order;
  bool has_set_out = false;
  bool has_arrived = false;
};

// Messages of one address: those that nobody receives yet, receives that nobody sends to yet, and, under rendezvous,
// messages that wait for their receiver's notice, and notices that came first.
struct Mailbox {
  std::deque<std::uint32_t> letters;
  std::deque<Correspondent> receivers;
  std::deque<std::uint32_t> held;
  std::uint32_t notices = 0;

  [[nodiscard]] bool empty() const { return letters.empty() && receivers.empty() && held.empty() && notices == 0; }
};

// A custom collective on one rank.
struct PhysicalCustom {
  std::uint32_t rank = 0, node = 0, collective = 0;
  std::int32_t priority = 0;
  const CustomProgram* program = nullptr;
  std::vector<std::uint32_t> parents;
  std::uint32_t left = 0;  // steps that are not over
};

enum class PhysicalEvent : std::uint8_t {
  ask,          // packet `ref` asks for its next link
  delivered,    // packet `ref` is where it goes to, endpoint passed
  reduced,      // packet `ref` is reduced
  wake,         // link `ref` is free
  left,         // seat `extra` of collective `ref`: what it sent has left
  node_over,    // node `extra` of rank `ref`
  custom_over,  // step `extra` of custom run `ref`
  asks_memory,  // memory request `ref` is at its server
  memory        // server `ref` may be through with a request; `extra`: of which of its plans
};

struct PhysicalHappening {
  PhysicalEvent what = PhysicalEvent::ask;
  std::uint32_t ref = 0;
  std::uint32_t extra = 0;
};

}  // namespace orrery::simulate
