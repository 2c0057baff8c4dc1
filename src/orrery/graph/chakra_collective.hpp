// The one conversion between Chakra's numbers of collectives and Orrery's.
#pragma once

#include <optional>

#include "orrery/core/collective.hpp"
#include "orrery/graph/record.hpp"

namespace orrery::graph {

// nullopt for numbers that are not in the schema, and for reduce_scatter_block, which no simulator reads.
[[nodiscard]] std::optional<Collective> collective_of(CollectiveType type);

[[nodiscard]] CollectiveType chakra_type(Collective collective);

}  // namespace orrery::graph
