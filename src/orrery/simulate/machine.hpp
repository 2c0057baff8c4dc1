// A simulated machine under ASTRA-sim's rules, to the nanosecond; docs/models/astra-sim.md has the rules. Everything a
// run needs is in here, so that many machines can run at once. Private to the room; simulate.hpp is the way in.
//
// The verbs are in files by what they are about:
//   machine.cpp             what happens when
//   machine_issue.cpp       nodes: which start, what they do
//   machine_collective.cpp  collectives to chunks, chunks through queues and phases
//   machine_window.cpp      ring, direct, halving and doubling
//   machine_tree.cpp        double binary tree
//   machine_custom.cpp      algorithms given as graphs
//   machine_mail.cpp        messages: matching, rendezvous
//   machine_network.cpp     messages: how long they take, with and without congestion
//   bus.cpp                 the way between a rank and its memory as a shared bus
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "orrery/engine/kernel.hpp"
#include "orrery/simulate/bus.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/pool.hpp"
#include "orrery/simulate/state.hpp"
#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

class Machine final : private BusDriver {
 public:
  explicit Machine(const Job& job);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // To the end; throws Stop.
  void run();

  // What came out, and what is left where something did not come to its end.
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  [[nodiscard]] const Pool<Running>& collectives() const { return running_; }
  [[nodiscard]] const Chunk* chunk_of(std::uint32_t rank, std::uint32_t group, std::uint32_t number) const;
  [[nodiscard]] const GroupState& group(std::uint32_t number) const { return groups_[number]; }
  [[nodiscard]] const Pool<Chunk>& chunks() const { return chunks_; }
  [[nodiscard]] const Queue& queue(std::uint32_t number) const { return queues_[number]; }
  [[nodiscard]] const std::unordered_map<Address, Box, AddressHash>& boxes() const { return boxes_; }
  [[nodiscard]] const std::vector<NodeSpan>& spans() const { return spans_; }
  [[nodiscard]] const std::vector<LinkCount>& link_counts() const { return link_counts_; }
  [[nodiscard]] const std::vector<DimensionCount>& dimension_counts() const { return dimension_counts_; }
  [[nodiscard]] std::uint64_t events() const { return kernel_.events(); }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t now() const { return kernel_.now(); }
  [[nodiscard]] bool skipped_dimensions() const { return skipped_dimensions_; }
  [[nodiscard]] bool overlapped_chunks() const { return overlapped_chunks_; }

 private:
  using PlanKey = std::tuple<std::uint32_t, std::uint8_t, std::uint64_t, std::uint16_t, std::string>;
  struct Trip {  // of a delay, where the bus is modelled
    bool to_memory = false, work = false, back = false;
  };

  void happen(const Event& event);

  // Nodes.
  void issue(std::uint32_t rank);
  [[nodiscard]] std::uint32_t next_to_issue(Rank& rank);
  void start(std::uint32_t rank, std::uint32_t node);
  void over_at_once(std::uint32_t rank, std::uint32_t node);
  void complete(std::uint32_t rank, std::uint32_t node);
  void free_children(std::uint32_t rank, std::uint32_t node, bool into_this_pass);
  void make_ready(std::uint32_t rank, std::uint32_t node);
  void leave_slot(std::uint32_t rank, std::uint32_t node);
  void end_check(std::uint32_t rank);
  void become_active(std::uint32_t rank);
  void start_memory(std::uint32_t rank, std::uint32_t node);
  void serve(const memory::Request& request, std::uint32_t server);

  // Collectives, chunks, queues.
  void start_collective(std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] const Plan& plan(std::uint32_t rank, const Work& work, std::uint64_t chunk);
  void take_turns(Running& running, Collective collective);
  void take_numbers(Running& running);
  void create_chunks(std::uint32_t collective);
  [[nodiscard]] std::uint32_t born(std::uint32_t collective, std::uint32_t ordinal, std::uint32_t queue);
  [[nodiscard]] std::uint32_t born_of(std::uint32_t heap);
  [[nodiscard]] std::uint32_t find_chunk(std::uint32_t rank, std::uint32_t group, std::uint32_t number);
  void forget_chunk(std::uint32_t chunk);
  [[nodiscard]] Stream& stream(std::uint32_t rank, std::uint32_t group);
  [[nodiscard]] std::uint32_t queues_per_rank() const;
  [[nodiscard]] std::uint32_t queue_of(const Running& running, std::uint32_t phase, std::uint32_t ordinal,
                                       bool& clockwise) const;
  void put(std::uint32_t chunk);
  void take_out(std::uint32_t chunk);
  void admit(std::uint32_t queue);
  void start_phase(std::uint32_t chunk);
  void phase_over(std::uint32_t chunk);
  [[nodiscard]] static const Phase& phase_of(const Chunk& chunk) { return *chunk.now; }
  void look_ahead(const Event& event) const;
  [[nodiscard]] std::uint32_t known_chunk(std::uint32_t rank, std::uint32_t group, std::uint32_t number) const;
  [[nodiscard]] std::int64_t priority_of(const Chunk& chunk) const { return running_[chunk.collective].priority; }

  // Algorithms.
  void delay(std::uint32_t chunk, std::uint32_t step, bool reduce, const Trip& trip);
  void endpoint_passed(std::uint32_t chunk, std::uint32_t step, bool reduce);
  void proceed(std::uint32_t chunk, std::uint32_t step);
  void receive(std::uint32_t chunk, std::uint32_t from);
  void start_window(std::uint32_t chunk);
  void open_slot(std::uint32_t chunk);
  void token(std::uint32_t chunk);
  [[nodiscard]] bool emit(std::uint32_t chunk);
  void start_tree(std::uint32_t chunk);
  void tree_step(std::uint32_t chunk, std::uint32_t step);
  void tree_receive(std::uint32_t chunk, std::uint32_t from);
  void start_custom(std::uint32_t chunk);
  void issue_custom(std::uint32_t run);
  void start_custom_step(std::uint32_t run, std::uint32_t step);
  void custom_step_over(std::uint32_t run, std::uint32_t step);

  // Messages.
  void send_native(const Chunk& chunk, std::uint32_t to, std::uint64_t bytes, std::uint64_t flight_ns,
                   std::uint32_t to_chunk = kNone);
  void expect_native(std::uint32_t chunk, std::uint32_t from, std::uint64_t bytes);
  void send(const Letter& letter);
  void expect(const Party& party, const Address& address);
  void announce(const Party& party, const Address& address);
  void post(const Party& party, const Address& address);
  void arrive(std::uint32_t letter);
  void arrive_native(const Letter& letter);
  void arrive_notice(const Letter& letter);
  void tell(const Party& party);
  void set_out(const Letter& letter);
  void begin_to_expect(const Party& party, const Address& address);

  // The network.
  [[nodiscard]] std::uint64_t flight_ns(std::uint32_t source, std::uint32_t target, std::uint64_t bytes);
  void depart(std::uint32_t letter);
  void depart(std::uint32_t letter, std::uint64_t flight_ns);
  void forward(std::uint32_t letter);
  void begin_link(std::uint32_t link, std::uint32_t letter);
  void hop(std::uint32_t letter);
  void free_link(std::uint32_t link);
  void count(const Letter& letter);
  void count_waiting(std::uint32_t link, bool joins);
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> next_link(
      const Letter& letter) const;  // link, device behind it

  // The bus.
  void later(std::uint32_t rank, std::uint64_t delay_ns, Step step, std::uint8_t port) override;
  void delivered(const BusRequest& request) override;

  const Job& job_;
  std::uint32_t count_;  // ranks
  engine::Kernel<Event> kernel_;
  std::vector<Rank> ranks_;
  std::vector<GroupState> groups_;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint8_t>, std::string> sticky_;  // rank, group, collective
  Pool<Running> running_;
  Pool<Chunk> chunks_;
  std::vector<Queue> queues_;
  std::uint32_t width_ = 1;  // chunks of a queue that run
  Pool<Letter> letters_;
  Pool<CustomRun> customs_;
  std::unordered_map<Address, Box, AddressHash> boxes_;
  std::unordered_map<Address, NoticeBox, AddressHash> notices_;
  std::unordered_map<Address, Meeting, AddressHash> meetings_;
  std::vector<LinkState> links_;
  std::vector<LinkCount> link_counts_;            // of links_; empty where nobody asks
  std::vector<DimensionCount> dimension_counts_;  // the same
  std::vector<memory::Server> servers_;
  std::vector<double> bytes_per_ns_;  // by dimension
  std::vector<Bus> buses_;
  std::uint64_t messages_ = 0;
  std::vector<NodeSpan> spans_;
  bool skipped_dimensions_ = false;  // a message crossed several dimensions and paid for one
  bool overlapped_chunks_ = false;   // a rank ran several chunks in a dimension
};

}  // namespace orrery::simulate
