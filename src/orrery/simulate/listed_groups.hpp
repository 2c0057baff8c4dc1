// Groups that a graph lists itself. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/simulate/inputs.hpp"
#include "orrery/simulate/rank_graph.hpp"

namespace orrery::simulate {

// From the file's metadata ("process_group/<name>", a list of ranks) and from METADATA nodes whose inputs contain
// PyTorch's table of process groups, [{"pg_name": "1", "ranks": [0, 1], …}, …], as PyTorch prints it, inside a list or
// not. Groups without ranks (all ranks) and groups with ranks that this job does not have are left out. Fails, with
// file and node, if a table cannot be read.
[[nodiscard]] Result<std::vector<Group>> listed_groups(const graph::Graph& graph, std::uint32_t rank,
                                                       const std::string& file, std::uint32_t ranks);

// The graph of a file, compiled with the groups of the job followed by its own.
struct ReadGraph {
  std::uint32_t rank = 0;  // the first that has it
  std::string file;
  RankGraph graph;
  std::vector<Group> own;  // that the graph lists
};

// Adds the groups that graphs list to the groups of the job, and changes the group numbers in the graphs to those of
// the job. Groups of two graphs with the same name and different members are different groups if no rank is in both;
// otherwise an error.
[[nodiscard]] Result<void> join_groups(std::vector<Group>& groups, std::vector<ReadGraph>& graphs);

}  // namespace orrery::simulate
