// Full results of one pricing, and the search over all strategies of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/madmax/job.hpp"
#include "orrery/results/mad_max.hpp"

namespace orrery::madmax {

// `with_events`: also every event of both streams, under MAD-Max's names.
[[nodiscard]] results::MadMaxEstimate estimate(Evaluator& evaluator, const Strategies& strategies,
                                               bool with_events = false);

struct Search {
  GivenStrategies fixed;  // classes that are not searched
  std::size_t top = 5;    // best ones to report in full
};

// Every combination of strategies of the classes that the model has. Experts of a recommender's top MLP use the
// strategy of its mlp, as in MAD-Max, unless fixed. Best first; ties in the order of `choices`. With the memory rule,
// strategies that do not fit are excluded. Complexity: strategies of all classes multiplied, each O(layers).
[[nodiscard]] results::MadMaxSearch search(Evaluator& evaluator, const Search& request);

}  // namespace orrery::madmax
