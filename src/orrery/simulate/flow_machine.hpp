// A cluster whose collectives and messages are flows (flows.hpp): docs/models/flow.md. It owns the whole state of a
// run. Private to the room; simulate.hpp is the interface.
//
// A collective starts when the last of its members has reached it, and ends on all of them at once. A message starts
// when it is sent. Both take the time of the closed form (network::Fabric) if nothing else uses their ports. Loads from
// the second memory tier, and stores to it, share the two directions of the device's port to it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/network/fabric.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/results/simulation_tables.hpp"
#include "orrery/simulate/collective_match.hpp"
#include "orrery/simulate/critical_path.hpp"
#include "orrery/simulate/envelope_matcher.hpp"
#include "orrery/simulate/flow_job.hpp"
#include "orrery/simulate/flows.hpp"
#include "orrery/simulate/kernel_clock.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_nodes.hpp"
#include "orrery/simulate/pool_levels.hpp"
#include "orrery/simulate/stepped_calls.hpp"
#include "orrery/simulate/switch_calls.hpp"
#include "orrery/simulate/topology_loads.hpp"

namespace orrery::simulate {

class FlowMachine {
 public:
  // `shared`: false gives every collective and message the ports for itself; `apart`: those of one kind.
  FlowMachine(const FlowJob& job, bool shared, std::optional<std::uint32_t> apart = std::nullopt);
  FlowMachine(const FlowMachine&) = delete;
  FlowMachine& operator=(const FlowMachine&) = delete;

  // Runs until no event is left; throws Stop and TooLong.
  void run();

  struct CollectiveRun {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // that have started: rank, node
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
    std::uint64_t first_start = 0, last_start = 0, end = 0;
    const SwitchCalls::Way* way = nullptr;  // in switches
    bool by_message = false;
  };

  [[nodiscard]] const PhysicalRounds& rounds() const { return rounds_; }
  [[nodiscard]] const PhysicalNodes& nodes() const { return nodes_; }
  [[nodiscard]] const CollectiveMatch& match() const { return match_; }
  [[nodiscard]] const std::vector<CollectiveRun>& collectives() const { return collectives_; }
  [[nodiscard]] const Flows& flows() const { return flows_; }
  // What the kinds of flows() are: traffic of a kind, each call on so many devices of the job.
  struct FlowKind {
    std::uint32_t kind = 0;  // FlowJob::kinds
    std::uint64_t devices = 0;
    friend bool operator==(const FlowKind&, const FlowKind&) = default;
  };
  [[nodiscard]] const std::vector<FlowKind>& flow_kinds() const { return flow_kinds_; }
  [[nodiscard]] std::vector<results::SimulatedLink> links() const;
  // Of a job that asks for it: what each kind of traffic had of each link of the topology.
  [[nodiscard]] std::vector<results::LinkUse> link_uses() const;
  [[nodiscard]] bool has_ordered() const { return has_ordered_; }
  // Of a topology whose switches reduce.
  [[nodiscard]] const SwitchCalls* switches() const { return switches_ ? &*switches_ : nullptr; }
  // Bits on all cables of a dimension of the cluster, protocols included, of the whole job.
  [[nodiscard]] double bits_on(std::uint32_t dimension) const;
  [[nodiscard]] std::uint64_t messages() const { return messages_; }  // flows that have ended
  // Of a node that has ended: what its time consists of (flow_parts.cpp), and the ends of the link that it names.
  [[nodiscard]] NodeParts parts_of(std::uint32_t rank, std::uint32_t node) const;
  [[nodiscard]] std::pair<std::string, std::string> ends_of_link(std::uint32_t link) const;
  [[nodiscard]] std::optional<Unreceived> unreceived() const {
    return matcher_.unreceived(
        [this](std::uint32_t number) -> const Continuation& { return messages_in_flight_[number].sender; });
  }

 private:
  struct Handler {
    FlowMachine& machine;
    void operator()(const PhysicalEvent& event) const { machine.handle(event); }
  };
  struct Load {
    std::uint16_t dimension = 0;
    FlowShare out = 0, in = 0;
    std::uint64_t sent = 0, received = 0;  // bytes
  };
  // A collective or message that is alone.
  struct Call {
    std::uint64_t time = 0;                    // picoseconds
    std::uint64_t latency = 0, reduction = 0;  // of it
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
    std::vector<Load> loads;
    std::vector<PortDemand> links;  // of the topology
    std::uint32_t routes = 0;       // routes_ when `links` was found
  };
  struct Message {
    Continuation sender, receiver;  // nodes; the receiver none until it is matched
    bool has_arrived = false;
  };
  // What a flow is: one of these.
  struct Use {
    std::uint32_t collective = kNone, message = kNone;
    std::uint32_t memory_rank = kNone, memory_node = kNone;
    std::uint32_t stepped = kNone;  // a message of a collective
  };
  struct Live {                 // flow
    std::uint32_t version = 0;  // of its end; earlier ends are void
    Use use;
  };
  struct PortCount {
    std::uint64_t bytes = 0, messages = 0;
  };

  void handle(const PhysicalEvent& event);
  void end_round();
  void prefetch(std::span<const std::uint32_t> ranks) const;
  void start(std::uint32_t rank, std::uint32_t node);
  void compute(std::uint32_t rank, std::uint32_t node);
  void end_kernel(std::uint32_t rank, std::uint32_t version);
  void slow_kernels(const CollectiveRun& run, const NodeTask& task, bool starts);
  void join(std::uint32_t rank, std::uint32_t node);
  void access_memory(std::uint32_t rank, std::uint32_t node);
  void end_collective(std::uint32_t number);
  // Collectives message by message (flow_steps.cpp).
  [[nodiscard]] bool goes_by_message(std::uint32_t number) const;
  void start_messages(std::uint32_t number);
  void schedule_departures();
  void depart(std::uint32_t message);
  void arrive(std::uint32_t message);
  std::uint64_t demand_message(std::uint32_t message);
  void send(std::uint32_t rank, std::uint32_t node);
  void receive(std::uint32_t rank, std::uint32_t node);
  void match(Message& message, const Continuation& receiver);
  void end_flow(std::uint32_t flow);
  void change_link(std::uint32_t change);
  [[nodiscard]] bool is_last_of_link(std::uint32_t change) const;
  void reroute(std::uint32_t port);
  void reroute_flow(std::uint32_t flow);
  [[noreturn]] void stop_at_stalled() const;
  void start_flow(std::uint64_t time, const FlowKind& kind, const Use& use);
  [[nodiscard]] const Call& collective_call(const NodeTask& task);
  [[nodiscard]] const SwitchCalls::Asked& asked_of(const NodeTask& task, Seconds otherwise);
  [[nodiscard]] const Call& starting_call(std::uint32_t number);
  [[nodiscard]] const Call& switch_call(const SwitchCalls::Way& way, std::size_t members);
  bool order_chunks(const NodeTask& task, Call& call);
  [[nodiscard]] Bytes whole_buffer(const NodeTask& task) const;
  [[nodiscard]] std::vector<std::uint32_t> members_of(std::uint32_t group) const;
  [[nodiscard]] const Call* known_call(std::uint32_t rank, std::uint32_t node) const;
  [[nodiscard]] NodeParts parts_of_call(const Call& call, bool is_message) const;
  [[nodiscard]] const Call& message_call(std::uint32_t rank, const RankBinding::Peer& peer, std::uint64_t bytes);
  // Outgoing ports first: of two full ports that limit a call alike, the one with the lower number is reported, which
  // must not depend on the ranks.
  [[nodiscard]] std::uint32_t port(std::uint32_t rank, std::uint32_t dimension, bool in) const {
    const auto ranks = static_cast<std::uint32_t>(job_.rank_graphs.size());
    return ((in ? ranks : 0) + rank) * (dimensions_ + 1) + dimension;
  }
  void demand(std::uint32_t rank, const Load& load, bool in);
  void add_links(Call& call, const std::vector<TopologyLoads::Load>& loads, Seconds alone);
  void demand_links(const Call& call);
  [[nodiscard]] std::uint32_t kind_for(std::uint32_t rank, std::uint32_t kind) const {
    return flow_job_.rank_kinds.empty() ? kind : flow_job_.rank_kinds[rank];
  }

  const FlowJob& flow_job_;
  const SimulationJob& job_;
  network::Fabric fabric_;
  std::vector<network::Fabric> part_fabrics_;  // of FlowJob::parts
  std::uint32_t dimensions_;  // of the cluster; ports to the second memory tier are those of dimension dimensions_
  PhysicalRounds rounds_;
  PhysicalNodes nodes_;
  KernelClock kernels_;
  CollectiveMatch match_;
  std::vector<std::uint32_t> places_;  // by rank: of its last collective, in match_
  std::vector<CollectiveRun> collectives_;
  Flows flows_;
  std::vector<FlowKind> flow_kinds_;
  std::map<std::tuple<std::uint32_t, Collective, std::uint64_t>, Call> calls_;
  std::map<std::tuple<std::uint64_t, std::uint16_t, std::uint32_t, std::uint32_t>, Call> transfers_;
  std::optional<TopologyLoads> topology_;
  std::optional<SteppedCalls> stepped_;
  std::optional<SwitchCalls> switches_;
  std::map<std::tuple<std::uint32_t, Collective, std::uint64_t>, SwitchCalls::Asked> asked_;
  std::map<const SwitchCalls::Way*, Call> switch_calls_;  // found by key only
  PoolLevels pool_;
  std::uint32_t first_pool_port_ = 0;  // behind those of links
  std::vector<Live> live_;             // by flow
  Pool<Message> messages_in_flight_;
  EnvelopeMatcher matcher_;
  std::vector<PortCount> counts_;
  std::vector<PortDemand> demands_;  // of the flow that starts
  std::uint64_t messages_ = 0;
  bool has_ordered_ = false;  // a call whose chunks choose their order
  std::optional<std::uint32_t> apart_;
  std::set<std::uint32_t> stalled_;  // flows that wait for a link to come back
  std::uint32_t routes_ = 0;         // times that links have failed for good
};

}  // namespace orrery::simulate
