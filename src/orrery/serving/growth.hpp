// Whether the number of requests in the system grows as long as requests arrive. A service level need not show it: a
// batch fills slowly, and a limit on the time per token is met while a queue of prompts grows.
#pragma once

#include "orrery/serving/fleet.hpp"

namespace orrery::serving {

struct Growth {
  double part = 0;        // of the requests that arrive, that are not answered but add up
  double chance = 0;      // standard deviation of `part` if nothing grows
  bool is_burst = false;  // all arrive in less time than the first answers take: nothing can be said about their rate
  bool is_short = false;  // they arrive for less than eight times that: it is not known whether anything grows
  double stay = 0;        // mean time in the system, seconds; of sessions, from the first turn to the last answer

  // Beyond chance, and by more than 2 %.
  [[nodiscard]] bool is_certain() const { return is_burst || (part > 0.02 && part > 3.0 * chance); }
};

// Of an open loop of a constant rate: the mean number in the system in the last quarter of the time in which requests
// (or sessions) arrive, less that in the second one. Its variance is taken as that of a system that answers each
// request on its own: the mean number, x the time of an answer over that of a quarter, x the squared coefficient of
// variation of intervals, if that is above 1. Queues near capacity vary more: what is found in a short run is to be
// found in a longer one too.
[[nodiscard]] Growth growth_of(const Workload& load, const FleetRun& run);

}  // namespace orrery::serving
