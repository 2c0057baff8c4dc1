// The critical path of a run under physical rules, from the start and end of every node, and the slack of nodes.
//
// A node waits for its parents, for the node that had its slot before, a collective for the last of its members, a
// receive for its message. The path goes back from the last end, each time to what ended last of these. Slack is the
// most by which a node can end later, all others taking as long as they did, without a later end of the run: links that
// are shared are not shared anew. Linear in nodes and dependencies. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/results/critical_path.hpp"
#include "orrery/simulate/collective_match.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_nodes.hpp"

namespace orrery::simulate {

// What the time of a node, from the moment when all it waits for is there, consists of: names and picoseconds. What
// lacks is `rest`, as calls take longer where they share ports.
struct NodeParts {
  std::vector<std::pair<std::string, std::uint64_t>> parts;
  std::string rest;
  std::uint32_t link = kNone;  // of the topology: the busiest one of a call
};

// What the machine that ran the job knows about nodes.
struct PathSource {
  const SimulationJob& job;
  const PhysicalNodes& nodes;  // with spans
  const CollectiveMatch& match;
  std::function<std::string(const NodeTask&)> activity;
  std::function<NodeParts(std::uint32_t rank, std::uint32_t node)> parts;
  std::function<std::uint64_t(std::uint32_t rank)> copies;  // ranks that it stands for
  std::function<std::pair<std::string, std::string>(std::uint32_t link)> ends_of_link = {};
};

[[nodiscard]] results::CriticalPath critical_path(const PathSource& source);

// The kind of a node in reports where groups have no kinds: "compute", "all_reduce", "messages".
[[nodiscard]] std::string activity_name(const NodeTask& task);

}  // namespace orrery::simulate
