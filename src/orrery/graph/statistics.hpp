// Statistics of a graph: counts, bytes and time by type, collective and group; degrees; the critical path.
//
// Bytes are comm_size of communication and tensor_size of everything else; time is the recorded duration. Sums
// saturate at 64 bits. Not modelled: waiting inside a recorded duration; idle time between nodes.
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

// Collectives of one process group; without a name: collectives of all ranks.
struct GroupAmount {
  std::optional<std::string> name;
  std::optional<std::uint64_t> ranks;  // how many, where the graph has their list
  Amount amount;

  friend bool operator==(const GroupAmount&, const GroupAmount&) = default;
};

// Of data and control dependencies on existing nodes.
struct Degrees {
  std::uint64_t roots = 0;   // nodes without parents
  std::uint64_t leaves = 0;  // nodes without children
  std::uint64_t most_parents = 0, most_children = 0;
  std::uint64_t most_parents_id = 0, most_children_id = 0;  // of the first node with that degree
  std::uint64_t levels = 0;                                 // nodes of the longest chain; 0 with a cycle

  friend bool operator==(const Degrees&, const Degrees&) = default;
};

struct PathNode {
  std::uint64_t id = 0;
  std::string name;
  NodeType type = NodeType::invalid;
  std::uint64_t time_ns = 0;

  friend bool operator==(const PathNode&, const PathNode&) = default;
};

// The chain of dependencies with the largest sum of recorded durations: a lower bound of any execution of the graph
// with these durations.
struct CriticalPath {
  std::uint64_t time_ns = 0;
  std::uint64_t nodes = 0;
  std::vector<NamedAmount> by_type;
  std::vector<PathNode> longest;  // its nodes with the longest durations

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
  std::vector<NamedAmount> by_name;        // longest first; numbers in names are replaced ("layer.#.mm")
  Degrees degrees;
  std::optional<CriticalPath> critical_path;  // none with a cycle

  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// `most`: how many entries by_name and CriticalPath::longest have at most.
[[nodiscard]] Statistics statistics(const Graph& graph, std::size_t most = 10);

// "COMP_NODE", "ALL_REDUCE"; "UNKNOWN_42" for values that are not in the schema.
[[nodiscard]] std::string type_text(NodeType type);
[[nodiscard]] std::string collective_text(const std::optional<Value>& comm_type);  // "NO_TYPE" without one

// `name` with every run of digits replaced by '#', so that repetitions of a layer have one name.
[[nodiscard]] std::string without_numbers(std::string_view name);

}  // namespace orrery::graph
