// A simulated machine under ASTRA-sim's rules, to the nanosecond; docs/models/astra-sim.md has the rules. It owns the
// whole state of a run, so that many machines can run at once. Private to the room; simulate.hpp is the interface.
//
// Each part of the machine has one duty and depends only on parts above it:
//   engine::Kernel     the event queue
//   MessageNetwork     times of messages, with and without congestion
//   NodeScheduler      which nodes start, times of ranks by activity
//   Messenger          matching of messages and receives, rendezvous
//   Endpoints          delays between the network and a rank's memory
//   ChunkRegistry      chunks by rank, group and number; ChunkQueues: their queues
//   PhaseRunner        algorithms of collectives
//   CustomCollectives  algorithms given as graphs
//   CollectiveEngine   collectives to chunks, chunks through queues and phases
// The machine passes each event to its part, and the result (which sender or receiver continues, which node has ended)
// to the next part.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/memory/expansion.hpp"
#include "orrery/simulate/collective_engine.hpp"
#include "orrery/simulate/endpoints.hpp"
#include "orrery/simulate/event.hpp"
#include "orrery/simulate/event_log.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/message_network.hpp"
#include "orrery/simulate/messenger.hpp"
#include "orrery/simulate/node_scheduler.hpp"
#include "orrery/simulate/phase_runner.hpp"

namespace orrery::simulate {

class Machine final : private BusDriver {
 public:
  explicit Machine(const SimulationJob& job);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Runs until no event is left; throws Stop and TooLong.
  void run();
  // The same for a folded job (is_folded()); throws OrderMatters, too.
  void run_folded(OrderCertificate& certificate);

  // The state after run(): results, and for a diagnosis the nodes that did not end.
  [[nodiscard]] const EventQueue& events() const { return events_; }
  [[nodiscard]] const NodeScheduler& nodes() const { return nodes_; }
  [[nodiscard]] const MessageNetwork& network() const { return network_; }
  [[nodiscard]] const Messenger& messenger() const { return messenger_; }
  [[nodiscard]] const ChunkRegistry& chunks() const { return chunks_; }
  [[nodiscard]] const CollectiveEngine& collectives() const { return collectives_; }
  [[nodiscard]] const EventLog* log() const { return log_ ? &*log_ : nullptr; }  // of a job with `explain`

 private:
  struct Handler {
    Machine& machine;
    void operator()(const Event& event) const { machine.handle(event); }
    void prefetch(const Event& event) const { machine.prefetch(event); }
  };

  struct LoggedHandler {
    Machine& machine;
    void operator()(const Event& event) const {
      machine.log_->begin(machine.events_.now(), event);
      machine.log_->describe(machine.work_of(event));
      machine.handle(event);
    }
  };

  struct FoldedHandler {
    Machine& machine;
    void operator()(const Event& event) const { machine.handle_folded(event); }
  };

  void start_all();
  void handle(const Event& event);
  void handle_folded(Event event);
  void handle_together(const Event& event);
  void prefetch(const Event& event) const;
  [[nodiscard]] EventWork work_of(const Event& event) const;
  [[nodiscard]] EventWork work_of_message(const Message& message) const;

  void issue(std::uint32_t rank);
  void start(std::uint32_t rank, std::uint32_t node);
  void start_memory(std::uint32_t rank, std::uint32_t node);
  void serve(const memory::Request& request, std::uint32_t server);
  void end_node(std::uint32_t rank, std::uint32_t node);
  void end_phase(std::uint32_t chunk);
  void end_custom_step(std::uint32_t run, std::uint32_t step);

  void arrive(std::uint32_t message);
  void arrive_for_chunk(const Message& message);
  void arrive_ready(const Message& ready);
  void resume(const Continuation& who);

  // The shared bus.
  void later(std::uint32_t rank, std::uint64_t delay_ns, Step step, std::uint8_t port) override;
  void delivered(const BusRequest& request) override;

  const SimulationJob& job_;
  OrderCertificate* certificate_ = nullptr;  // of a folded run
  EventQueue events_;
  MessageNetwork network_;
  NodeScheduler nodes_;
  Messenger messenger_;
  Endpoints endpoints_;
  ChunkRegistry chunks_;
  PhaseRunner runner_;
  CustomCollectives customs_;
  CollectiveEngine collectives_;
  std::vector<memory::Server> servers_;
  std::optional<EventLog> log_;
};

}  // namespace orrery::simulate
