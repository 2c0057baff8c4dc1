// Whether an open loop is answered as fast as it arrives.
#pragma once

#include <string_view>

#include "orrery/results/serving.hpp"
#include "orrery/serving/fleet.hpp"

namespace orrery::serving {

// Of an answer about a rate whose ServingGrowth is short.
inline constexpr std::string_view kTooFewRequests =
    "too few requests to tell whether the engines keep up: they arrive within eight times the time that the first "
    "answers take; give more --requests";

// Of an open loop of a constant rate: the mean number in the system in the last quarter of the time in which requests
// (or sessions) arrive, less that in the second one. Its variance is taken as that of a system that answers each
// request on its own: the mean number, x the time of an answer over that of a quarter, x the squared coefficient of
// variation of intervals, if that is above 1. Queues near capacity vary more: what is found in a short run is to be
// found in a longer one too.
[[nodiscard]] results::ServingGrowth growth_of(const Workload& load, const FleetRun& run);

}  // namespace orrery::serving
