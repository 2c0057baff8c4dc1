// The critical path of a run, from the start and end of every node, and the slack of nodes.
//
// A machine that knows more than nodes gives pieces of the path: what a chunk of a collective, or a message, did on
// which link. Otherwise a collective, or a message, is one step. A node waits for its parents, for the node that had
// its slot before, a collective for the last of its members, a receive for its message. The path goes back from the
// last end, each time to what ended last of these. Slack is the most by which a node can end later, all others taking
// as long as they did, without a later end of the run: links that are shared are not shared anew. Linear in nodes and
// dependencies. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

// A stretch of the path inside a collective or message.
struct PathPiece {
  std::uint32_t rank = 0, node = kNone;                      // whose it is; kNone: of no single node
  std::uint64_t start = 0, end = 0;                          // picoseconds
  std::string name;                                          // "chunk 2, step 3: rank 1 to rank 2"
  std::vector<std::pair<std::string, std::uint64_t>> parts;  // add up to it
  std::string from, to;                                      // ends of the link that it is on, if any
};

// The last piece first, each starting where the next one ends; the last one starts when `node` of `rank` did.
struct PathTrace {
  std::vector<PathPiece> pieces;
  std::uint32_t rank = 0, node = 0;
};

// What the machine that ran the job knows about nodes.
struct PathSource {
  const SimulationJob& job;
  const std::vector<PhysicalSpan>& spans;  // in the order of their ends
  const CollectiveMatch& match;
  std::function<std::string(const NodeTask&)> activity;
  std::function<NodeParts(std::uint32_t rank, std::uint32_t node)> parts;
  std::function<std::uint64_t(std::uint32_t rank)> copies;  // ranks that it stands for
  std::function<std::pair<std::string, std::string>(std::uint32_t link)> ends_of_link = {};
  // What led to the end of a collective, or of a message, at a rank, where that is known.
  std::function<std::optional<PathTrace>(const PhysicalSpan& span)> trace = {};
  std::vector<PathPiece> pieces = {};  // the whole path, the last piece first; empty: not known
  bool has_communication_slot = false;
};

[[nodiscard]] results::CriticalPath critical_path(const PathSource& source);

// The kind of a node in reports where groups have no kinds: "compute", "all_reduce", "messages".
[[nodiscard]] std::string activity_name(const NodeTask& task);

}  // namespace orrery::simulate
