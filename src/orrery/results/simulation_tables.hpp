// The tables of a simulation: per rank, dimension, link, collective and operator. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::results {

// The time of a rank until its finish, by activity: each figure is the length of a union of intervals, so overlapping
// nodes are not counted twice. Laws, to the picosecond:
//   compute + exposed_comm + exposed_memory + exposed_host + idle = finish
//   exposed_comm <= comm, exposed_memory <= memory, exposed_host <= host, waiting <= idle
struct RankTimes {
  std::uint64_t finish_ps = 0;
  std::uint64_t compute_ps = 0;         // an accelerator node runs
  std::uint64_t comm_ps = 0;            // a send or a collective runs, or a receive whose message has been sent
  std::uint64_t memory_ps = 0;          // an access to remote memory runs
  std::uint64_t host_ps = 0;            // a host node runs
  std::uint64_t exposed_comm_ps = 0;    // comm, and no compute
  std::uint64_t exposed_memory_ps = 0;  // memory, and neither compute nor comm
  std::uint64_t exposed_host_ps = 0;    // host, and none of those
  std::uint64_t idle_ps = 0;            // none of the four
  std::uint64_t waiting_ps = 0;         // idle, with a receive whose message has not been sent

  friend bool operator==(const RankTimes&, const RankTimes&) = default;
};

// A link with traffic, and the ranks at its ends; one end may be a switch.
struct SimulatedLink {
  std::uint32_t dimension = 0;
  std::uint32_t from = 0, to = 0;  // kSwitch: the switch of that dimension at the other end
  std::uint64_t bytes = 0;
  std::uint64_t busy_ps = 0;
  std::uint64_t messages = 0;
  std::uint64_t queued_ps = 0;  // waiting time of messages for this link, summed

  static constexpr std::uint32_t kSwitch = 0xFFFFFFFF;
};

// A dimension of the network and its links together.
struct SimulatedDimension {
  std::uint32_t dimension = 0;
  std::string topology;
  std::uint32_t ranks = 0;
  std::optional<std::uint64_t> messages, bytes;     // sent in it, each counted once; absent if not counted
  std::uint64_t links = 0;                          // with traffic
  std::uint64_t link_messages = 0, link_bytes = 0;  // each message once per link
  std::uint64_t busy_ps = 0, busiest_ps = 0;        // of all links; of the busiest link
  std::uint64_t queued_ps = 0;
};

// One collective of a group: from the first rank's start to the last one's end.
struct SimulatedCollective {
  std::string op;         // "ALL_REDUCE"
  std::string algorithm;  // one per dimension that takes part, inner first: "ring,direct"
  std::uint64_t bytes = 0;
  std::uint32_t ranks = 0;
  std::string group;  // its name in the file; empty for the whole machine
  bool whole_machine = false;
  std::uint64_t first_start_ns = 0, last_start_ns = 0, end_ns = 0;
};

// A node of a rank. Only if requested.
struct SimulatedOperator {
  std::uint32_t rank = 0;
  std::uint64_t node = 0;  // id
  std::string kind;        // "compute", "host", "ALL_REDUCE", "send", "receive", "memory"
  std::uint64_t bytes = 0;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::string name;
};

struct SimulationTables {
  std::vector<RankTimes> ranks;
  std::vector<SimulatedDimension> dimensions;    // inner first
  std::vector<SimulatedLink> links;              // by dimension, then from, then to
  std::vector<SimulatedCollective> collectives;  // in the order of their ends
  std::vector<SimulatedOperator> operators;      // in the order of their ends
};

}  // namespace orrery::results
