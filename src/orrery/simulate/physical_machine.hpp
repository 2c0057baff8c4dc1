// A simulated machine under physical rules: docs/models/physical.md. Everything a run needs is in here, so that many
// machines can run at once. Private to the room; simulate.hpp is the interface.
//
// Nothing here depends on the numbers of ranks or on the order in which events of a round are handled: handlers change
// what is theirs, add to counts or put requests into queues that sort them; decisions are taken when the round ends.
//
// Each part of the machine has one duty and depends only on parts above it:
//   engine::Rounds       what happens when
//   Links                routes, who gets a link next
//   PhysicalNodes        which nodes start, what ranks do with their time
//   PhysicalMemory       memories beyond the accelerator
//   PhysicalCollectives  chunks and steps of collectives
//   PhysicalMessages     messages of nodes and of custom collectives
//   PhysicalCustoms      collectives given as graphs
#pragma once

#include <cstdint>

#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_collectives.hpp"
#include "orrery/simulate/physical_customs.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_links.hpp"
#include "orrery/simulate/physical_memory.hpp"
#include "orrery/simulate/physical_messages.hpp"
#include "orrery/simulate/physical_nodes.hpp"

namespace orrery::simulate {

class PhysicalMachine {
 public:
  explicit PhysicalMachine(const SimulationJob& job);
  PhysicalMachine(const PhysicalMachine&) = delete;
  PhysicalMachine& operator=(const PhysicalMachine&) = delete;

  // To the end, or until no event is left; throws Stop and TooLong.
  void run();

  [[nodiscard]] const PhysicalRounds& rounds() const { return rounds_; }
  [[nodiscard]] const Links& links() const { return links_; }
  [[nodiscard]] const PhysicalNodes& nodes() const { return nodes_; }
  [[nodiscard]] const PhysicalCollectives& collectives() const { return collectives_; }
  [[nodiscard]] const PhysicalMessages& messages() const { return messages_; }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }  // packets

 private:
  struct Handler {
    PhysicalMachine& machine;
    void operator()(const PhysicalEvent& event) const { machine.handle(event); }
    void prefetch(const PhysicalEvent& event, int distance) const { machine.prefetch(event, distance); }
  };

  void handle(const PhysicalEvent& event);
  void deliver(std::uint32_t packet);
  void prefetch(const PhysicalEvent& event, int distance) const;

  // The end of a round.
  void settle();
  void settle(std::uint32_t rank);
  void start(std::uint32_t rank, std::uint32_t node);
  void start_collective(std::uint32_t rank, std::uint32_t node);
  void end_custom_step(std::uint32_t run, std::uint32_t step);
  void register_notices();

  const SimulationJob& job_;
  PhysicalRounds rounds_;
  Links links_;
  PhysicalNodes nodes_;
  PhysicalMemory memory_;
  PhysicalCollectives collectives_;
  PhysicalMessages messages_;
  PhysicalCustoms customs_;
  std::uint64_t endpoint_;  // picoseconds
  std::uint64_t delivered_ = 0;
};

}  // namespace orrery::simulate
