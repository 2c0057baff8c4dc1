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

// From the file's metadata ("process_group/<name>", a list of ranks) and from METADATA nodes whose inputs hold
// PyTorch's table of process groups, [{"pg_name": "1", "ranks": [0, 1], …}, …], as it prints it, inside a list or not.
// Groups without ranks (all ranks) and groups of a larger job, with ranks that this one does not have, are left out.
// Fails naming file and node where a table cannot be read.
[[nodiscard]] Result<std::vector<Group>> listed_groups(const graph::Graph& graph, std::uint32_t rank,
                                                       const std::string& file, std::uint32_t ranks);

// Groups of ranks' own, as those of the job: `programs[rank]` was compiled with the job's groups and own[rank] behind
// them, and is changed to mean the job's, which grow by what is new. What two ranks list by the same name and with
// different members are two groups, as long as no rank is in both; else it is refused.
[[nodiscard]] Result<void> join_groups(std::vector<Group>& groups, std::vector<RankGraph>& rank_graphs,
                                       const std::vector<std::vector<Group>>& own,
                                       const std::vector<std::string>& files);

}  // namespace orrery::simulate
