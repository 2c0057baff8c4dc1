// Why a simulated run takes as long as it does: its critical path, slack, and the gain of faster resources. Plain
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::results {

// What one node, or one collective or message, adds to the critical path. Steps follow each other without gaps from the
// start of the run to its end.
struct PathStep {
  std::uint32_t rank = 0;      // whose node
  std::uint64_t node = 0;      // id
  std::uint32_t activity = 0;  // of CriticalPath::activities
  std::string name;            // of the node; can be empty
  std::uint64_t start_ps = 0, end_ps = 0;

  friend bool operator==(const PathStep&, const PathStep&) = default;
};

// All nodes of one kind: kernels, one operation in one kind of group, messages.
struct PathActivity {
  std::string name;
  std::uint64_t steps = 0, on_path_ps = 0;  // on the critical path
  std::uint64_t per_rank_ps = 0;  // of all its nodes, from the moment all it waits for is there: mean of ranks
  // Of nodes that are not on the path: by how much each can take longer, alone, and the run ends at the same time.
  std::uint64_t off_path = 0;  // nodes
  std::uint64_t least_slack_ps = 0, median_slack_ps = 0;

  friend bool operator==(const PathActivity&, const PathActivity&) = default;
};

// What the steps of the path wait for. The parts add up to the path.
struct PathPart {
  std::string name;
  std::uint64_t time_ps = 0;

  friend bool operator==(const PathPart&, const PathPart&) = default;
};

// A link that steps of the path cross; on a topology, the busiest one of calls on the path.
struct PathLink {
  std::string from, to;
  std::uint64_t steps = 0, time_ps = 0;  // of those steps or calls
};

// The same run, simulated with a faster resource.
struct Saving {
  std::string resource;
  double factor = 1.0;  // of its rate
  std::uint64_t makespan_ns = 0;
};

struct CriticalPath {
  std::vector<PathStep> steps;           // from the start of the run to its end
  std::vector<PathActivity> activities;  // the largest part of the path first
  std::vector<PathPart> parts;           // the largest first
  std::vector<PathLink> links;           // the largest first; empty where links are not known
  bool crosses_links = false;            // the links are those that steps cross
  std::vector<Saving> savings;           // in the order of resources; set by the caller

  [[nodiscard]] std::uint64_t end_ps() const { return steps.empty() ? 0 : steps.back().end_ps; }
};

}  // namespace orrery::results
