// Failure rates from a list of incidents, with intervals.
//
// Incidents are a Poisson count over an exposure in node-days (nodes of eight accelerators). Intervals are exact
// (Garwood 1936): the rates at which the count would be as large, or as small, with the tail's probability. Two halves
// of the list are compared by the exact binomial test; the distribution of times between incidents by its coefficient
// of variation (1 for a Poisson stream).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/results/incidents.hpp"

namespace orrery::campaign {

struct Incident {
  Seconds at;                       // after the begin of the list
  std::string cause;                // may be empty
  std::optional<Seconds> downtime;  // until the job ran again
};

struct PoissonInterval {
  double low = 0, high = 0;
};
// Of the mean of a Poisson count, with this coverage (0.8, 0.95).
[[nodiscard]] PoissonInterval poisson_interval(std::int64_t count, double coverage);

// Incidents, at the lower rate, after which two rates with this ratio (> 1) differ by more than chance explains: with
// significance 5 % (two sides) and power 80 % over equal exposures, n = (1.960 + 0.842)^2 (1 + ratio) / (ratio - 1)^2.
[[nodiscard]] double incidents_to_tell(double ratio);

// `devices` accelerators over `window`. Incidents in order of time.
[[nodiscard]] results::IncidentFit fit_incidents(const std::vector<Incident>& incidents, double devices,
                                                 Seconds window);

}  // namespace orrery::campaign
