// Simulated collectives against the list of all their messages, for tests.
#pragma once

#include <algorithm>

#include <gtest/gtest.h>

#include "orrery/network/flow_run.hpp"
#include "orrery/network/stepped_collective.hpp"

namespace orrery::network::test {

// As many messages, the same end, and the same bytes on every link as the flows have with full solutions.
inline void expect_times_of(const SteppedTimes& times, const FlowList& flows) {
  const FlowTimes reference = run_flows(flows, FairRates::Method::full);
  EXPECT_EQ(times.messages, flows.size());
  const double last = *std::max_element(times.finish.begin(), times.finish.end());
  EXPECT_NEAR(last, *std::max_element(reference.finish.begin(), reference.finish.end()), 1e-9 * last);
  for (std::size_t link = 0; link < times.carried.size(); ++link) {
    EXPECT_NEAR(times.carried[link], reference.carried[link], 1e-6);
  }
}

}  // namespace orrery::network::test
