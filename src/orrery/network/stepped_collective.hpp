// Collectives on a topology, message by message: every message of a member schedule (member_schedule.hpp) is a flow on
// its route at max-min fair rates (flow_network.hpp). Messages are made when they can start, so the memory is that of
// the members and of the flows that are alive.
//
// A message waits for all messages that its sender receives in earlier steps, then the latency of its outermost level,
// then moves its bytes. Schedules over several dimensions, and chunks that follow each other: composition_run.hpp. Left
// out: arithmetic on arriving data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orrery/hardware/routes.hpp"
#include "orrery/network/fair_rates.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/member_schedule.hpp"
#include "orrery/network/schedule.hpp"

namespace orrery::network {

// Of the links and messages of a level of the topology.
struct LevelRule {
  double latency = 0;  // seconds, of a message whose outermost level this is, without hardware::added_latency
  double payload = 1;  // bytes of messages / bytes of the link
};

// A schedule over the dimensions of a group, in its chunks.
struct ByDimension {
  Schedule schedule;
  Group group;
  std::vector<char> both_ways;               // by extent: its lines are rings of links
  std::vector<std::vector<double>> latency;  // seconds, by phase and outermost level of a message
};

struct SteppedCollective {
  MemberSchedule schedule;           // without a refusal
  std::vector<std::uint32_t> nodes;  // of the topology, by participant: devices, and of in_switch the switch last
  double block_bytes = 0;            // of one of the schedule's blocks
  double start = 0;                  // seconds
  // all_to_all: bytes from member i to member j at [i x members + j], instead of block_bytes; empty: all alike.
  std::vector<double> pair_bytes;
  // Instead of `schedule` and `block_bytes`; `nodes` by position (composition_run.hpp).
  std::optional<ByDimension> by_dimension;
};

struct SteppedTimes {
  std::vector<double> finish;   // seconds, by collective: its last message has arrived
  std::vector<double> carried;  // bytes of messages, by link
  std::uint64_t messages = 0;
  std::uint64_t updates = 0, full = 0, repairs = 0;  // of the rates
};

// `levels`: by level of the topology. `routing`: adaptive takes the ways with the fewest flows at the start of the
// message; spread, which divides a message over all ways, takes another way for each message.
[[nodiscard]] SteppedTimes run_collectives(hardware::Routes& routes, std::span<const LevelRule> levels,
                                           std::span<const SteppedCollective> collectives,
                                           FairRates::Method method = FairRates::Method::automatic);

}  // namespace orrery::network
