// A simulated machine under physical rules: docs/models/physical.md. It owns the whole state of a run, so that many
// machines can run at once. Private to the room; simulate.hpp is the interface.
//
// Nothing here depends on rank numbers or on the order in which events of a round are handled. Handlers change the
// state of one rank or chunk, add to counts, or put requests into sorted queues; arbitration is at the end of the
// round.
//
// Each part of the machine has one duty and depends only on parts above it:
//   engine::Rounds       the event queue
//   Links                routes, arbitration of links
//   PhysicalNodes        which nodes start, activity of ranks over time
//   PhysicalMemory       memory outside the accelerator
//   PhysicalCollectives  chunks and steps of collectives
//   PhysicalMessages     messages of nodes and of custom collectives
//   PhysicalCustoms      collectives given as graphs
#pragma once

#include <cstdint>
#include <optional>

#include "orrery/simulate/job.hpp"
#include "orrery/simulate/link_log.hpp"
#include "orrery/simulate/physical_collectives.hpp"
#include "orrery/simulate/physical_customs.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_links.hpp"
#include "orrery/simulate/physical_memory.hpp"
#include "orrery/simulate/physical_messages.hpp"
#include "orrery/simulate/physical_nodes.hpp"

namespace orrery::simulate {

// Messages of collectives that only add to a count: when their arrival becomes known, or one event for each (slow; the
// reference of tests).
enum class Counting : std::uint8_t { ahead, by_events };

class PhysicalMachine {
 public:
  explicit PhysicalMachine(const SimulationJob& job, Counting counting = Counting::ahead);
  PhysicalMachine(const PhysicalMachine&) = delete;
  PhysicalMachine& operator=(const PhysicalMachine&) = delete;

  // Runs until no event is left; throws Stop and TooLong.
  void run();

  [[nodiscard]] const PhysicalRounds& rounds() const { return rounds_; }
  [[nodiscard]] const Links& links() const { return links_; }
  [[nodiscard]] const PhysicalNodes& nodes() const { return nodes_; }
  [[nodiscard]] const PhysicalCollectives& collectives() const { return collectives_; }
  [[nodiscard]] const CollectiveMatch& match() const { return collectives_.match(); }
  [[nodiscard]] std::optional<Unreceived> unreceived() const { return messages_.unreceived(); }
  [[nodiscard]] const LinkLog* log() const { return log_ ? &*log_ : nullptr; }  // of an unfolded job with `explain`
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }          // transfers

 private:
  struct Handler {
    PhysicalMachine& machine;
    void operator()(const PhysicalEvent& event) const { machine.handle(event); }
    void prefetch(const PhysicalEvent& event, int distance) const { machine.prefetch(event, distance); }
  };

  void handle(const PhysicalEvent& event);
  void deliver(std::uint32_t transfer);
  void prefetch(const PhysicalEvent& event, int distance) const;
  void prefetch_wake(std::uint32_t link, int distance) const;

  void end_round();
  void advance(std::uint32_t rank);
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
  Counting counting_;
  std::uint64_t endpoint_;  // picoseconds
  std::uint64_t delivered_ = 0;
  std::optional<LinkLog> log_;
};

}  // namespace orrery::simulate
