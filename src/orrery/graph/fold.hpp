// Folds a graph that is too large to draw: nodes of the same name or the same depth become one node with a count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/graph/graph.hpp"

namespace orrery::graph {

// none: every node by itself. name: nodes of one type whose names differ only in numbers. depth: nodes of one type
// within `levels` levels of the graph; the level of a node is the number of dependencies on the longest path to it.
// Nodes on a cycle, and after one, have no level; together they form a separate level.
struct Fold {
  enum class By : std::uint8_t { none, name, depth };
  By by = By::none;
  std::uint64_t levels = 1;
};

struct FoldedNode {
  std::string name;  // without numbers where several were folded by name; "level 10 to 19" by depth
  NodeType type = NodeType::invalid;
  std::uint64_t id = 0;  // of the first node
  std::uint64_t count = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
};

// From a parent to a child. Dependencies within a folded node are omitted.
struct FoldedEdge {
  std::uint32_t parent = 0;
  std::uint32_t child = 0;
  bool data = true;  // or control
  std::uint64_t count = 0;
};

struct Folded {
  std::vector<FoldedNode> nodes;  // in the order of their first nodes
  std::vector<FoldedEdge> edges;  // by child, then kind, then parent
  std::uint64_t missing = 0;      // dependencies on missing nodes
};

[[nodiscard]] Folded folded(const Graph& graph, const Fold& fold);

}  // namespace orrery::graph
