// Graphs as Graphviz (dot) and GraphML. Time and file size are linear in nodes and dependencies. Programs that lay out
// these files fail beyond some thousand boxes: fold the graph first (graph/fold.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/graph/fold.hpp"

namespace orrery::trace {

// Boxes have the name, id, type, count (if above one), time and bytes; edges have their count (if above one); control
// dependencies are dashed. Returns the bytes written.
[[nodiscard]] Result<std::uint64_t> write_dot(const graph::Folded& graph, const std::string& path);

// The same as data of nodes (id, name, type, count, duration_ns, bytes) and edges (kind, count).
[[nodiscard]] Result<std::uint64_t> write_graphml(const graph::Folded& graph, const std::string& path);

}  // namespace orrery::trace
