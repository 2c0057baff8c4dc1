// Graphs for programs that draw: Graphviz (dot) and GraphML. Time and file grow with nodes and dependencies; laying out
// more than some thousand boxes is beyond the programs that read them, so fold first (graph/fold.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/graph/fold.hpp"

namespace orrery::trace {

// Boxes have the name, id, type, count where it is more than one, time and bytes; edges their count where it is more
// than one; control dependencies are dashed. Returns the bytes written.
[[nodiscard]] Result<std::uint64_t> write_dot(const graph::Folded& graph, const std::string& path);

// The same as data of nodes (id, name, type, count, duration_ns, bytes) and edges (kind, count).
[[nodiscard]] Result<std::uint64_t> write_graphml(const graph::Folded& graph, const std::string& path);

}  // namespace orrery::trace
