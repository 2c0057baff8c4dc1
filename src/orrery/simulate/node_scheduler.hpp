// Which nodes of a rank start, and the times of ranks by activity. A rank has one slot each for host, compute and
// communication nodes. Of the ready nodes whose slot is free, the one with the smallest id starts. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "orrery/simulate/event.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

struct RankState {
  std::vector<std::uint32_t> parents;                        // by node: that have not ended
  std::array<std::vector<std::uint32_t>, kSlots + 1> ready;  // by slot: heaps, the smallest first
  std::vector<std::uint32_t> ready_next_pass;  // became ready during an issue pass that does not start them
  std::array<std::uint32_t, kSlots> slots{kNone, kNone, kNone};  // the node in each
  std::uint32_t running = 0;                                     // nodes
  std::uint32_t active = 0;               // running nodes except receives whose message has not departed
  std::vector<std::uint64_t> starts;      // by node, where spans are kept
  std::vector<std::uint64_t> departures;  // by node, of the messages of sends, where tables are kept

  bool finished = false;
  std::uint64_t finish_ns = 0, exposed_ns = 0;
  std::uint64_t compute_ns = 0, memory_ns = 0, busy_ns = 0, busy_since = 0;
};

struct NodeSpan {
  std::uint32_t rank = 0, node = 0;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t departure_ns = 0;  // of the message of a send, where tables are kept
};

class NodeScheduler {
 public:
  NodeScheduler(const SimulationJob& job, const EventQueue& events);

  // Nodes without parents become ready.
  void free_roots(std::uint32_t rank);

  // Starts the next node and returns it; kNone if none can start. An issue pass calls next() until it returns kNone.
  [[nodiscard]] std::uint32_t next(std::uint32_t rank);

  // The node has ended: its slot is free, and its children may be ready.
  void end(std::uint32_t rank, std::uint32_t node);
  // The same for a node without duration, during the issue pass that started it. Children of METADATA nodes can start
  // in that pass, those of others in the next one.
  void end_in_pass(std::uint32_t rank, std::uint32_t node);

  // The rank has finished if no node runs or is ready.
  void check_finish(std::uint32_t rank);

  // The message of a receive has departed, so the receive is active.
  void become_active(std::uint32_t rank) {
    if (ranks_[rank].active++ == 0) { ranks_[rank].busy_since = events_.now(); }
  }
  void note_departure(std::uint32_t rank, std::uint32_t node) {
    if (job_.tables) { ranks_[rank].departures[node] = events_.now(); }
  }
  void count_compute(std::uint32_t rank, std::uint64_t ns) { ranks_[rank].compute_ns += ns; }

  [[nodiscard]] const std::vector<RankState>& ranks() const { return ranks_; }
  [[nodiscard]] const std::vector<NodeSpan>& spans() const { return spans_; }

 private:
  void make_ready(std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] static std::uint32_t take_ready(RankState& rank);
  void free_slot(std::uint32_t rank, std::uint32_t node);
  void free_children(std::uint32_t rank, std::uint32_t node, bool in_this_pass);

  const SimulationJob& job_;
  const EventQueue& events_;
  std::vector<RankState> ranks_;
  std::vector<NodeSpan> spans_;
};

}  // namespace orrery::simulate
