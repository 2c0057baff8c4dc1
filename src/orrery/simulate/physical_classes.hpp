// Classes of ranks of a job on physical links, found by comparing graphs, groups and messages. One rank of each class
// can be simulated for all of it (docs/models/physical.md, "One rank of each class"). Private to the room.
//
// Classes are those of fold.hpp, with the shapes of groups and the directions of messages on this network; and the
// neighbours of two ranks of a class in their groups, in each dimension, are of the same classes. Whatever a rank sends
// in a step then goes to the same class as what the others of its class send. The classes are then checked: a group
// of a simulated rank has the simulated ranks of all classes of its ranks, messages of nodes pair the ranks of two
// classes one to one, and no message uses the links of a third rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

struct RankClasses {
  std::vector<std::uint32_t> first;            // by rank: the first rank of its class
  std::vector<std::uint32_t> representatives;  // these ranks, ascending
  std::string obstacle;                        // why every rank has to be simulated; then the lists are empty
};

// `job`: under physical rules, on links. O(nodes) for each round of refinement.
[[nodiscard]] RankClasses physical_classes(const SimulationJob& job);

// The job with the nodes of one rank of each class.
[[nodiscard]] SimulationJob job_of_classes(const SimulationJob& job, const RankClasses& classes);

// Simulates it. Fails if it does not end; then the run of all ranks says why.
[[nodiscard]] Result<results::Simulation> simulate_classes(const SimulationJob& job, const RankClasses& classes);

}  // namespace orrery::simulate
