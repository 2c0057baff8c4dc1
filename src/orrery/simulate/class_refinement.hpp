// Classes finer than those of a class job: for jobs in which the ranks of a class differ in the shapes of their groups,
// or in the dimensions that their messages cross. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/parallel/layout.hpp"
#include "orrery/results/rank_runs.hpp"
#include "orrery/simulate/class_job.hpp"
#include "orrery/simulate/pool_folding.hpp"

namespace orrery::simulate {

// Ranks of one colour have the same graph, groups of the same shape with as many members of every colour, and messages
// over the same dimensions to ranks of the same colour; on a pool, blocks of levels with as many ranks of every colour,
// and as many members of their groups. Colours are numbered in the order of their first ranks.
struct RankColours {
  results::RankRuns<std::uint32_t> of;    // by rank
  std::vector<std::uint32_t> first_rank;  // by colour
  std::vector<std::uint64_t> ranks;       // by colour: how many have it
};

// The fewest colours with these properties; nothing if there are more than half as many as ranks, or if a rank has
// messages with the same tag and size to several ranks of a colour. The cost grows with the number of ranks, but not
// with the length of their graphs. `pool`: of a job with memory accesses to a pool.
[[nodiscard]] std::optional<RankColours> fine_colours(const parallel::Layout& layout, const ClassJob& job,
                                                      const PoolBlocks* pool = nullptr);

}  // namespace orrery::simulate
