// Where the time between the tokens of a sequence goes.
#pragma once

#include <optional>

#include "orrery/results/serving.hpp"
#include "orrery/serving/deployment.hpp"
#include "orrery/serving/fleet.hpp"

namespace orrery::serving {

// Parts of the mean time between tokens of a run, warm-up included; none if no sequence has a second token.
//
// Decode iterations of as many sequences are split as one with their mean context is. Iterations with parts of prompts
// as well are split as if they had none; what they take beyond that, or iterations of prompts only, is the prompts'.
[[nodiscard]] std::optional<results::TokenTime> token_time_of(const Deployment& deployment, const Workload& load,
                                                              const FleetRun& run);

}  // namespace orrery::serving
