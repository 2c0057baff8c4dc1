// A collective algorithm that is given as graphs, one per position in the group: sends, receives and computing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

struct CustomStep {
  enum class Act : std::uint8_t { send, receive, compute };
  std::uint64_t id = 0;
  std::uint64_t amount = 0;  // bytes; of computing, picoseconds
  std::uint64_t tag = 0;
  std::uint32_t peer = 0;  // position in the group
  std::uint32_t parents = 0;
  Act act = Act::compute;
  std::vector<std::uint32_t> children;  // in the order in which ASTRA-sim frees them
};

struct CustomProgram {
  std::vector<CustomStep> steps;
  std::vector<std::uint32_t> start;  // without parents, in ASTRA-sim's order
};

// The program of a custom collective from its graph. Fails for nodes of other types. Compute steps take their recorded
// duration; in ASTRA-sim's semantics that is whole microseconds and at least 1 ns.
[[nodiscard]] Result<CustomProgram> custom_program(const graph::Graph& graph, const std::string& file,
                                                   Semantics semantics);

}  // namespace orrery::simulate
