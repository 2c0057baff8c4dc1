// An execution trace alone as a Chakra graph: what a host would issue, without times. For a simulator that has its own.
//
// Nodes are the innermost operators. An operator follows the one before it on its thread, and those that made its
// tensors on other threads. Collectives run beside their thread: what follows a "wait" for them, or uses their tensors,
// follows them.
#pragma once

#include <cstdint>
#include <optional>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/profile/host_trace.hpp"

namespace orrery::profile {

struct HostGraphCounts {
  std::uint64_t nodes = 0, collectives = 0, messages = 0;
  std::uint64_t waits = 0;          // entries that name the collective that they wait for
  std::uint64_t unknown_waits = 0;  // for collectives before the recording
  std::uint64_t without_group = 0;  // collectives whose group is only an address
  std::uint64_t tensor_deps = 0;    // by tensors, from other threads or from collectives
};

struct HostGraph {
  graph::Graph graph;
  HostGraphCounts counts;
  std::optional<std::uint64_t> rank;  // of its collectives
};

// The trace has to be read with HostTraceOptions::details and ::tensors. Fails if it has no operators.
[[nodiscard]] Result<HostGraph> host_graph(const HostTrace& host);

}  // namespace orrery::profile
