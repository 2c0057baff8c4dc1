// What a graph has: counts, bytes and time by type, collective and group; who waits for how many; the critical path.
//
// Bytes are comm_size of communication and tensor_size of everything else; time is the recorded duration. Sums that do
// not fit 64 bits stay at the largest number. Left out: waiting inside a recorded duration; idle time between nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/graph/graph.hpp"

namespace orrery::graph {

struct Amount {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t time_ns = 0;

  friend bool operator==(const Amount&, const Amount&) = default;
};

struct NamedAmount {
  std::string name;
  Amount amount;

  friend bool operator==(const NamedAmount&, const NamedAmount&) = default;
};

// Collectives of one group; without a name: of all ranks.
struct GroupAmount {
  std::optional<std::string> name;
  std::optional<std::uint64_t> ranks;  // how many, where the graph has their list
  Amount amount;

  friend bool operator==(const GroupAmount&, const GroupAmount&) = default;
};

// Dependencies of both kinds on nodes that are there.
struct Degrees {
  std::uint64_t roots = 0;   // nodes without parents
  std::uint64_t leaves = 0;  // nodes without children
  std::uint64_t most_parents = 0, most_children = 0;
  std::uint64_t most_parents_id = 0, most_children_id = 0;  // of the first node that has as many
  std::uint64_t levels = 0;                                 // nodes of the longest chain; 0 where there is a cycle

  friend bool operator==(const Degrees&, const Degrees&) = default;
};

struct PathNode {
  std::uint64_t id = 0;
  std::string name;
  NodeType type = NodeType::invalid;
  std::uint64_t time_ns = 0;

  friend bool operator==(const PathNode&, const PathNode&) = default;
};

// The chain of dependencies that takes longest by recorded durations: no run of the graph with these durations is
// shorter.
struct CriticalPath {
  std::uint64_t time_ns = 0;
  std::uint64_t nodes = 0;
  std::vector<NamedAmount> by_type;
  std::vector<PathNode> longest;  // its nodes that take longest

  friend bool operator==(const CriticalPath&, const CriticalPath&) = default;
};

struct Statistics {
  std::uint64_t nodes = 0, data_deps = 0, ctrl_deps = 0;
  std::uint64_t timed = 0;               // nodes with a duration
  std::uint64_t started = 0;             // nodes with a start time
  std::optional<std::uint64_t> span_ns;  // from the first start to the last end of those
  Amount all;
  std::vector<NamedAmount> by_type;        // in the order of the schema, unknown ones last
  std::vector<NamedAmount> by_collective;  // the same
  std::vector<GroupAmount> by_group;       // by name
  std::vector<NamedAmount> by_name;        // those that take longest; numbers within names are left out ("layer.#.mm")
  Degrees degrees;
  std::optional<CriticalPath> critical_path;  // none where there is a cycle

  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// `most`: how many entries by_name and CriticalPath::longest have at most.
[[nodiscard]] Statistics statistics(const Graph& graph, std::size_t most = 10);

// "COMP_NODE", "ALL_REDUCE"; "UNKNOWN_42" for what the schema does not know.
[[nodiscard]] std::string type_text(NodeType type);
[[nodiscard]] std::string collective_text(const std::optional<Value>& comm_type);  // "NO_TYPE" where there is none

// `name` with every run of digits as '#': what repeats with other numbers has one name.
[[nodiscard]] std::string without_numbers(std::string_view name);

}  // namespace orrery::graph
