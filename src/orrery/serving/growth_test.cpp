// Whether an open loop answers what arrives: an engine that serves a prompt at a time, so that its capacity is known.
#include "orrery/serving/growth.hpp"

#include <gtest/gtest.h>

#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::growth_test {
namespace {

// A request takes 20 ms: one prompt of 100 tokens and no more.
results::ServingGrowth growth_at(double part, std::int64_t requests, std::uint64_t seed) {
  TestFleet fleet;
  fleet.settings.max_sequences = 1;
  Workload load = engine_test::load_of(requests, part / 20e-3, 100, 1, 1.0, seed);
  const FleetRun run = fleet.run(load);
  return growth_of(load, run);
}

// Above the capacity by a tenth, a tenth of what arrives adds up (1 - 1 / 1.1).
TEST(Growth, finds_loads_above_capacity_and_no_others) {
  int above = 0, below = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const results::ServingGrowth growth = growth_at(1.1, 4000, seed);
    EXPECT_NEAR(growth.part, 1.0 - 1.0 / 1.1, 0.06);
    above += growth.is_certain() ? 1 : 0;
    below += growth_at(0.8, 4000, seed).is_certain() ? 1 : 0;
  }
  EXPECT_EQ(above, 40);
  EXPECT_LE(below, 1);
}

// Of runs that cannot be looked at again a verdict is surer: no false one of 200, and none that misses a third too
// much.
TEST(Growth, of_few_requests_only_much_is_certain) {
  int above = 0, below = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    above += growth_at(1.33, 1000, seed).is_certain(false) ? 1 : 0;
    below += growth_at(0.85, 1000, seed).is_certain(false) ? 1 : 0;
  }
  EXPECT_EQ(above, 200);
  EXPECT_EQ(below, 0);
}

TEST(Growth, of_a_burst_nothing_can_be_said) {
  EXPECT_TRUE(growth_at(1000.0, 200, 1).is_burst);
  EXPECT_FALSE(growth_at(0.5, 200, 1).is_burst);
  EXPECT_FALSE(growth_at(0.5, 200, 1).is_certain());
}

// Ten times the capacity: nine tenths of what arrives adds up, though no answer takes long at first.
TEST(Growth, is_the_part_that_is_not_answered) { EXPECT_NEAR(growth_at(10.0, 2000, 3).part, 0.9, 0.02); }

}  // namespace
}  // namespace orrery::serving::growth_test
