// Collectives of a job on a topology, message by message (docs/models/topologies.md#message-by-message). Private to the
// room.
//
// A member sends the messages of a step of its member schedule (network/member_schedule.hpp) when it has received those
// of all earlier steps; each leaves after the latency of the outermost level that it crosses, and is a flow on its
// route. The caller has the clock and the flows: it asks for departures, starts a flow for each, and reports arrivals.
// network/stepped_collective.hpp does the same for collectives alone, in floating point.
//
// A call that the closed form makes dimension by dimension, in chunks or in the switch of a scale-up domain has the
// messages of that schedule (network/composition_run.hpp). Where the closed form has switches that are no node of the
// topology, the call takes the cheapest way without them.
//
// Left out: arithmetic on arriving data, copies inside a member.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/network/composition_run.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/level_rules.hpp"
#include "orrery/network/member_schedule.hpp"
#include "orrery/simulate/flows.hpp"
#include "orrery/simulate/pool.hpp"
#include "orrery/simulate/topology_loads.hpp"

namespace orrery::simulate {

class SteppedCalls {
 public:
  // `loads`: of the job; its routes are those of the messages.
  SteppedCalls(const hardware::Cluster& cluster, network::NodeEgress egress, TopologyLoads& loads);
  SteppedCalls(const SteppedCalls&) = delete;
  SteppedCalls& operator=(const SteppedCalls&) = delete;

  struct Asked {
    std::uint32_t number = 0;  // the caller's
    Collective collective = Collective::all_reduce;
    Bytes bytes;  // of the whole buffer
    // automatic, hierarchical: the schedule of the closed form; in one level, and where that is refused: the usual one.
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
    network::Group shape;
    std::vector<std::uint32_t> ranks;  // at least 2
  };
  // Starts the call; what its messages follow.
  CollectiveAlgorithm start(const Asked& asked, std::uint64_t now);

  struct Departure {
    std::uint64_t time = 0;  // picoseconds
    std::uint32_t message = 0;
  };
  // Of the messages that were made since the last call.
  [[nodiscard]] std::vector<Departure> take_departures() { return std::exchange(departures_, {}); }

  // The message leaves, or takes another route because a link has failed. Ports are numbers of links.
  struct Flow {
    std::uint64_t alone = 0;  // picoseconds; 0: no bytes
    std::vector<PortDemand> links;
  };
  [[nodiscard]] Flow flow_of(std::uint32_t message);

  // The message is at its receiver. The number of the call whose last message it was, otherwise kNone.
  std::uint32_t arrive(std::uint32_t message, std::uint64_t now);

  // What a message is, while it is on its way.
  struct Message {
    std::uint32_t lane = 0, from = 0, to = 0, step = 0;  // participants of the lane
    std::uint8_t level = 0;                              // outermost of the route that it was made with
    double bytes = 0;
    std::vector<std::uint32_t> route;    // adaptive only
    std::uint16_t phase = 0, along = 0;  // by dimension: CompositionRun::Message::phase and lane
    std::uint64_t place = 0;
  };
  [[nodiscard]] std::uint32_t number_of(std::uint32_t message) const { return lanes_[messages_[message].lane].number; }
  struct Ends {
    std::uint32_t from = 0, to = 0;  // ranks; kNone: a switch
    std::uint8_t level = 0;          // outermost of its route
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Ends ends_of(std::uint32_t message);

 private:
  struct Member {
    std::uint32_t step = 0;     // the first whose messages it has not all received
    std::uint32_t missing = 0;  // of that step
    // The route of its last message: most algorithms send to the same member again and again.
    std::uint32_t peer = kNone;
    std::uint32_t routes = 0;  // TopologyLoads::failures() then
    std::uint8_t level = 0;
    Seconds added;  // latency of its route, see hardware::added_latency
    std::vector<std::uint32_t> route;
  };
  // A schedule of the closed form.
  struct ByDimension {
    network::CompositionRun run;
    network::PhaseRules rules;
    std::unordered_map<std::uint64_t, std::uint32_t> switches;  // nodes, by phase and first position of the line
  };
  struct Way {
    network::MemberSchedule flat;
    std::string_view protocol;
    std::optional<network::Schedule> by_dimension;
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  };
  // A call is one lane, or for each device of a scale-up domain a ring of its own.
  struct Lane {
    std::uint32_t number = 0;
    network::MemberSchedule schedule;
    std::vector<std::uint32_t> ranks;  // by participant
    double block_bytes = 0;
    std::vector<network::LevelRule> levels;
    std::vector<Member> members;
    std::uint32_t unfinished = 0;                            // members
    std::unordered_map<std::uint64_t, std::uint32_t> early;  // arrivals of later steps
    std::unique_ptr<ByDimension> by_dimension;               // instead of schedule, block_bytes, levels
  };

  void open_lane(const Asked& asked, const network::MemberSchedule& schedule, const network::LevelRules& rules,
                 std::vector<std::uint32_t> ranks, double bytes, std::uint64_t now);
  void enter_steps(std::uint32_t lane, std::uint32_t member, std::uint64_t now);
  void send_message(std::uint32_t lane, std::uint32_t member, std::uint32_t i, std::uint64_t now);
  [[nodiscard]] Way way_of(const Asked& asked, const std::vector<std::uint32_t>& ranks) const;
  // Whether every line of a phase in switches has a switch that all its devices have a cable to.
  [[nodiscard]] bool has_its_switches(const network::CompositionRun& run,
                                      const std::vector<std::uint32_t>& ranks) const;
  [[nodiscard]] std::uint32_t switch_of(const std::vector<std::uint32_t>& line,
                                        const std::vector<std::uint32_t>& ranks) const;
  void open_by_dimension(const Asked& asked, const Way& way, std::vector<std::uint32_t> ranks, std::uint64_t now);
  void send_by_dimension(std::uint32_t lane, std::uint64_t now);
  [[nodiscard]] std::uint32_t node_of(Lane& lane, std::uint32_t participant, std::size_t phase);
  [[nodiscard]] static std::size_t route_number(const Lane& lane, const Message& message);
  std::uint32_t close_lane(std::uint32_t lane);
  void find_route(Lane& lane, const Message& message);
  const std::vector<std::uint32_t>& route_of(Message& message);
  [[nodiscard]] std::uint32_t domain_of(const std::vector<std::uint32_t>& ranks) const;

  const hardware::Cluster cluster_;  // with the bandwidths of the closed form, tiers oversubscribed
  const network::Fabric fabric_;
  TopologyLoads& loads_;
  mutable std::vector<std::vector<std::uint32_t>> cables_;  // switches, by device
  Pool<Lane> lanes_;
  Pool<Message> messages_;
  std::unordered_map<std::uint32_t, std::uint32_t> open_;  // lanes of a call that are not at their end, by number
  std::vector<Departure> departures_;
  std::uint64_t spread_ = 0;
  std::vector<double> alive_;  // flows, by link; adaptive only
};

}  // namespace orrery::simulate
