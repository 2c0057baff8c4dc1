// Collectives under physical rules: a chunk at each rank proceeds as soon as the data that it needs is there. There is
// no queue of chunks in which one could keep another from going on; where they want the same link, the link decides.
// Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_group.hpp"
#include "orrery/simulate/physical_links.hpp"
#include "orrery/simulate/physical_nodes.hpp"
#include "orrery/simulate/physical_schedule.hpp"

namespace orrery::simulate {

// A chunk of a collective at one of its seats.
struct Seat {
  std::uint32_t in = 0;        // everything that is received in earlier steps has arrived and is reduced
  std::uint32_t got = 0;       // of step `in`
  std::uint32_t out = 0;       // all of the steps before is sent
  std::uint32_t held = kNone;  // packets that arrived before their step, or before the rank
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
  NodeTask task;  // of the first rank that has it
  std::uint32_t ranks = 0;
  std::uint32_t has = 0;              // ranks whose graph has it
  std::uint32_t begun = 0, over = 0;  // ranks
  std::string custom;
  const PhysicalSchedule* schedule = nullptr;       // nullptr before the first rank arrives, and of custom ones
  const PhysicalSchedule* last_schedule = nullptr;  // of the last chunk
  std::uint32_t chunks = 0;
  std::vector<Joined> joined;  // by position, then switches
  std::vector<Seat> seats;     // by chunk, then seat
  std::uint64_t first_start = 0, last_start = 0, end = 0;

  [[nodiscard]] const PhysicalSchedule& schedule_of(std::uint32_t chunk) const {
    return chunk + 1 == chunks ? *last_schedule : *schedule;
  }
};

class PhysicalCollectives {
 public:
  PhysicalCollectives(const SimulationJob& job, PhysicalRounds& rounds, Links& links, PhysicalNodes& nodes);
  PhysicalCollectives(const PhysicalCollectives&) = delete;
  PhysicalCollectives& operator=(const PhysicalCollectives&) = delete;

  // A rank reaches its node of a collective: the collective's number.
  [[nodiscard]] std::uint32_t note_start(std::uint32_t rank, std::uint32_t node);
  // It runs the collective, which is not a custom one, with this priority on links.
  void join(std::uint32_t collective, std::uint32_t rank, std::uint32_t node, std::int32_t priority);
  // The rank has run a custom one.
  void end_custom(std::uint32_t collective);

  // A packet is at its target; is reduced; has left its sender at a time; what a seat has sent has left.
  void deliver(std::uint32_t packet);
  void count(std::uint32_t packet);
  void leave(std::uint32_t packet, std::uint64_t time);
  void end_chunk(std::uint32_t collective, std::uint32_t seat);

  [[nodiscard]] const std::vector<PhysicalCollective>& all() const { return collectives_; }
  [[nodiscard]] std::uint32_t collective_of(std::uint32_t rank, std::uint32_t node) const;
  [[nodiscard]] std::optional<std::uint32_t> node_of(std::uint32_t rank, std::uint32_t collective) const;
  [[nodiscard]] const PhysicalGroup& group(std::uint32_t number) const { return groups_[number]; }

  // Prefetch what deliver() and leave() access.
  void prefetch_target(const Packet& packet) const {
    __builtin_prefetch(collectives_[packet.owner].seats.data() + packet.to);
  }
  void prefetch_source(const Packet& packet) const {
    __builtin_prefetch(collectives_[packet.owner].seats.data() + packet.from);
  }

 private:
  using ScheduleKey = std::tuple<std::uint32_t, std::uint8_t, std::uint64_t, std::uint16_t>;

  void make_groups();
  void match_collectives();
  void prepare(PhysicalCollective& collective, std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] const PhysicalSchedule& schedule(const PhysicalCollective& collective, std::uint64_t chunk,
                                                 std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] std::vector<Extent> extents(const NodeTask& task, std::uint32_t rank) const;
  void accept(std::uint32_t packet);
  void accept_held(Seat& seat);
  void advance(std::uint32_t collective, std::uint32_t seat, std::uint32_t chunk);
  void send_step(std::uint32_t collective, std::uint32_t seat, std::uint32_t chunk, const PhysicalPhase& phase,
                 std::uint32_t step);
  void take_held(Seat& seat);
  void end_seat(std::uint32_t collective, std::uint32_t seat);
  void end_rank(std::uint32_t collective, std::uint32_t position);

  const SimulationJob& job_;
  PhysicalRounds& rounds_;
  Links& links_;
  PhysicalNodes& nodes_;
  std::uint32_t count_;                // ranks
  std::vector<PhysicalGroup> groups_;  // [kWholeMachine]: all ranks
  std::vector<PhysicalCollective> collectives_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> collective_of_;  // by rank: node, collective
  std::map<ScheduleKey, std::unique_ptr<PhysicalSchedule>> schedules_;
};

}  // namespace orrery::simulate
