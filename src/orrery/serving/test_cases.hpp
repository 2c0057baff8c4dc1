// Loads and fleets of tests of the room; defined in engine_test.cpp.
#pragma once

#include <utility>

#include "orrery/serving/load.hpp"
#include "orrery/serving/test_prices.hpp"

namespace orrery::serving::engine_test {

// Poisson arrivals at `rate` requests per second (0: all at the start), lengths uniform from `range` of them.
[[nodiscard]] Workload load_of(std::int64_t requests, double rate, std::int64_t input, std::int64_t output,
                               double range, std::uint64_t seed);

// A fleet and load of which every choice is random; blocks are scarce.
struct RandomCase {
  TestFleet fleet;
  Workload load;
};

// Draws of RapidCheck: call it in a property. `branches`: of each request.
[[nodiscard]] RandomCase random_case(std::int64_t branches = 1);

// A pool that prefills and a pool that decodes.
struct Pools {
  TestFleet prefill, decode;
  FleetOptions options;

  FleetRun run(Workload& load) {
    prefill.shape.prefill_only = true;
    const auto pool = [](TestFleet& fleet) {
      return Pool{&fleet.settings, fleet.shape, &fleet.price, fleet.replicas, fleet.autoscale};
    };
    auto run = run_fleet(load, {pool(prefill), pool(decode)}, options);
    ORRERY_ASSERT(run.has_value());
    return std::move(*run);
  }
};

// Draws of RapidCheck: two such pools for a case.
[[nodiscard]] Pools random_pools(const RandomCase& c);

}  // namespace orrery::serving::engine_test
