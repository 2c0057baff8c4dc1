// A simulated machine under physical rules: docs/models/physical.md. Everything a run needs is in here, so that many
// machines can run at once. Private to the room; simulate.hpp is the way in.
//
// Nothing here depends on the numbers of ranks or on the order in which events of a round are handled: handlers change
// what is theirs, add to counts or put requests into queues that sort them; decisions fall when the round ends.
//
//   physical_machine.cpp     what happens when; ranks and what they do with their time
//   physical_nodes.cpp       nodes: which start, what they do
//   physical_collective.cpp  collectives: chunks, steps
//   physical_mail.cpp        messages of nodes and of custom collectives
//   physical_links.cpp       routes and links
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "orrery/engine/rounds.hpp"
#include "orrery/memory/fair_server.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_state.hpp"
#include "orrery/simulate/pool.hpp"
#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

class PhysicalMachine final : private LinkUser {
 public:
  explicit PhysicalMachine(const Job& job);

  // To the end, or until nothing can happen any more; throws Stop and TooLong.
  void run();

  struct NodeSpan {
    std::uint32_t rank = 0, node = 0;
    std::uint64_t start = 0, end = 0;  // picoseconds
  };

  [[nodiscard]] const std::vector<PhysicalRank>& ranks() const { return ranks_; }
  [[nodiscard]] bool finished(std::uint32_t rank) const {
    return ranks_[rank].over == job_.programs[rank].nodes.size();
  }
  [[nodiscard]] const std::vector<PhysicalCollective>& collectives() const { return collectives_; }
  [[nodiscard]] std::uint32_t collective_of(std::uint32_t rank, std::uint32_t node) const;
  [[nodiscard]] std::optional<std::uint32_t> node_of(std::uint32_t rank, std::uint32_t collective) const;
  [[nodiscard]] const PhysicalGroup& group(std::uint32_t number) const { return groups_[number]; }
  [[nodiscard]] const std::vector<NodeSpan>& spans() const { return spans_; }
  [[nodiscard]] std::uint64_t events() const { return rounds_.events(); }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t now() const { return rounds_.now(); }

  // Messages of SEND nodes that have arrived and that no RECV node matches: how many, and the first sender.
  struct Unreceived {
    std::uint32_t rank = 0, node = 0;
    std::uint64_t messages = 0;
  };
  [[nodiscard]] std::optional<Unreceived> unreceived() const;
  [[nodiscard]] std::vector<results::SimulatedLink> link_counts() const { return links_.counts(); }

 private:
  using PlanKey = std::tuple<std::uint32_t, std::uint8_t, std::uint64_t, std::uint16_t, std::uint32_t>;

  void handle(const PhysicalHappening& event);
  void settle();
  void look_ahead(const PhysicalHappening& event, int distance) const;

  // Nodes.
  void settle(std::uint32_t rank);
  void touch(std::uint32_t rank);
  void free(std::uint32_t rank, std::uint32_t node);
  void issue(std::uint32_t rank);
  void start(std::uint32_t rank, std::uint32_t node);
  void end(std::uint32_t rank, std::uint32_t node);
  void end_later(std::uint32_t rank, std::uint32_t node);
  void change(std::uint32_t rank, Activity activity, int by);
  [[nodiscard]] Activity activity_of(const Work& work) const;
  [[nodiscard]] std::int32_t next_priority(std::uint32_t rank, const Work& work);
  void start_memory(std::uint32_t rank, std::uint32_t node);
  void ask_memory(std::uint32_t request);
  void plan_memory(std::uint32_t server);
  void leave_memory(std::uint32_t server, std::uint32_t plan);

  // Collectives.
  void know_collectives();
  void join(std::uint32_t rank, std::uint32_t node);
  void prepare(PhysicalCollective& collective, std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] const PhysicalPlan& plan(const PhysicalCollective& collective, std::uint64_t chunk, std::uint32_t rank,
                                         std::uint32_t node);
  [[nodiscard]] std::vector<Extent> extents(const Work& work, std::uint32_t rank) const;
  void deliver(std::uint32_t packet);
  void accept(std::uint32_t packet);
  void count(std::uint32_t packet);
  void advance(std::uint32_t collective, std::uint32_t seat, std::uint32_t chunk);
  void send_step(std::uint32_t collective, std::uint32_t seat, std::uint32_t chunk, const PhysicalPhase& phase,
                 std::uint32_t step);
  void take_held(Seat& seat);
  void seat_done(std::uint32_t collective, std::uint32_t seat);
  void chunk_over(std::uint32_t collective, std::uint32_t seat);
  void rank_over(std::uint32_t collective, std::uint32_t position);

  // Messages of nodes and custom collectives.
  void send(const Envelope& envelope, const Correspondent& sender, const Order& order);
  void receive(const Envelope& envelope, const Correspondent& receiver);
  void set_out(std::uint32_t letter);
  void letter_arrived(std::uint32_t letter);
  void notice_arrived(std::uint32_t letter);
  void pair(std::uint32_t letter, const Correspondent& receiver);
  void tell(const Correspondent& who);
  void receiving(const Correspondent& who);
  void start_custom(std::uint32_t rank, std::uint32_t node, std::int32_t priority);
  void start_custom_step(std::uint32_t run, std::uint32_t step);
  void custom_step_over(std::uint32_t run, std::uint32_t step);

  // Links tell of packets.
  void asks_at(std::uint64_t time, std::uint32_t packet) override;
  void arrives_at(std::uint64_t time, std::uint32_t packet) override;
  void reduced_at(std::uint64_t time, std::uint32_t packet) override;
  void leaves_at(std::uint64_t time, const Packet& packet) override;
  void will_leave(const Packet& packet) const override;
  void wakes_at(std::uint64_t time, std::uint32_t link) override;

  struct MemoryRequest {
    std::uint32_t rank = 0, node = 0, server = 0;
    std::uint64_t alone = 0;
  };
  struct MemoryServer {
    memory::FairServer server;
    std::uint32_t plan = 0;
  };

  const Job& job_;
  std::uint32_t count_;  // ranks
  engine::Rounds<PhysicalHappening> rounds_;
  Links links_;
  std::uint64_t endpoint_;
  std::vector<PhysicalRank> ranks_;
  std::vector<std::uint32_t> dirty_;  // ranks
  std::vector<PhysicalGroup> groups_;
  std::vector<PhysicalCollective> collectives_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> collective_of_;  // by rank: node, collective
  std::map<PlanKey, std::unique_ptr<PhysicalPlan>> plans_;
  Pool<PhysicalLetter> letters_;
  std::unordered_map<Envelope, Mailbox, EnvelopeHash> mail_;
  Pool<PhysicalCustom> customs_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> custom_ended_;  // in this round: run, step
  std::vector<MemoryServer> servers_;
  Pool<MemoryRequest> requests_;
  std::uint64_t messages_ = 0;
  std::vector<NodeSpan> spans_;
};

}  // namespace orrery::simulate
