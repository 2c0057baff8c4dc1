// Results of a run: distributions over requests, rates, and where the time of a request goes.
#pragma once

#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/serving.hpp"
#include "orrery/serving/fleet.hpp"

namespace orrery::serving {

struct SummaryOptions {
  double warm_up = 0.0;           // part of the requests, by arrival, that no statistic of requests counts
  double request_overhead_s = 0;  // added to the first token of each request
  bool each = false;
  std::vector<StationOptions> stations = {};  // of `run.stations`
};

// Fills what follows from outcomes; `result.slo` has the limits, `result.pools` names, GPUs and caches.
void summarise(results::Serving& result, const Workload& load, const std::vector<Pool>& pools, const FleetRun& run,
               const SummaryOptions& options);

// "ttft_p99=2s tpot_p99=50ms": limits separated by spaces or commas.
[[nodiscard]] Result<std::vector<results::ServiceLevel>> read_slo(std::string_view text);

[[nodiscard]] results::Distribution distribution_of(std::vector<double> values);

}  // namespace orrery::serving
