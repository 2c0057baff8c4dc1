// Matches the nodes of two graphs, independently of their ids. See difference.hpp. Private to the room.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "orrery/graph/difference.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::graph {

inline constexpr NodeIndex kUnmatched = std::numeric_limits<NodeIndex>::max();

struct Matching {
  std::vector<NodeIndex> of_a;  // the node of B for each of A, or kUnmatched
  std::vector<NodeIndex> of_b;  // the inverse
};

[[nodiscard]] Matching match(const Graph& a, const Graph& b, const DifferenceOptions& options);

// Whether attributes of that name are compared.
[[nodiscard]] bool counts(std::string_view attribute, const DifferenceOptions& options);

}  // namespace orrery::graph
