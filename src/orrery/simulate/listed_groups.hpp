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

// Adds the groups that ranks list, own[rank], to the groups of the job. rank_graphs[rank] was compiled with the groups
// of the job followed by own[rank]; its group numbers are changed to those of the job. Groups of two ranks with the
// same name and different members are different groups if no rank is in both; otherwise an error.
[[nodiscard]] Result<void> join_groups(std::vector<Group>& groups, std::vector<RankGraph>& rank_graphs,
                                       const std::vector<std::vector<Group>>& own,
                                       const std::vector<std::string>& files);

}  // namespace orrery::simulate
