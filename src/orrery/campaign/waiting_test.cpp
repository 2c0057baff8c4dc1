#include "orrery/campaign/waiting.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"

namespace orrery::campaign::waiting_test {
namespace {

constexpr double kDay = 86'400.0;

// `in_repair` nodes on average, repaired in two days, of a job that is down for no time.
Process nodes_of(double in_repair, std::int64_t spares) {
  Process process;
  process.repair = Seconds(2 * kDay);
  process.nodes = {{Hertz(in_repair / process.repair.value()), 1}};
  process.interval = {Seconds(600), Seconds(2), Seconds(0)};
  process.spares = spares;
  return process;
}

double in_repairs(const Process& process, double running) {
  return waiting_for_nodes(process, process.repair * running) / process.repair;
}

// K = 0 while the job runs, so that every failure costs a passage from 1 to 0: (e^a - 1) / a repairs. Before that, the
// first wait: for a = 0.01 one node with probability a (1 - a), which takes one repair.
TEST(waiting_for_nodes, without_spares_is_linear_in_time) {
  for (const double a : {0.01, 0.5, 3.0}) {
    const Process process = nodes_of(a, 0);
    const double first = in_repairs(process, 1e-9), grows = std::expm1(a);
    for (const double running : {0.01, 0.3, 1.0, 20.0, 1000.0}) {
      EXPECT_NEAR(in_repairs(process, running), first + grows * running, 1e-7 * (first + grows * running)) << a;
    }
  }
  EXPECT_NEAR(in_repairs(nodes_of(0.01, 0), 1e-9), 0.01, 1e-4);
}

// P(K > s) of the time: of the time in which it does not wait, P(K > s) / P(K <= s).
TEST(waiting_for_nodes, tends_to_the_share_of_time_without_a_spare) {
  for (const std::int64_t spares : {1, 4, 12}) {
    const Process process = nodes_of(4.0, spares);
    double weight = std::exp(-4.0), below = 0.0;
    for (std::int64_t k = 0; k <= spares; ++k, weight *= 4.0 / static_cast<double>(k)) { below += weight; }
    const double slope = (in_repairs(process, 2000.0) - in_repairs(process, 1000.0)) / 1000.0;
    EXPECT_NEAR(slope / ((1.0 - below) / below), 1.0, 1e-6) << spares;
  }
}

TEST(waiting_for_nodes, grows_with_time_and_failures_and_falls_with_spares) {
  double before = 0.0;
  for (const double running : {1e-6, 0.01, 0.1, 1.0, 10.0, 100.0}) {
    const double now = in_repairs(nodes_of(3.0, 5), running);
    EXPECT_GT(now, before);
    EXPECT_GT(in_repairs(nodes_of(3.5, 5), running), now);
    EXPECT_LT(in_repairs(nodes_of(3.0, 6), running), now);
    before = now;
  }
  EXPECT_EQ(in_repairs(nodes_of(0.0, 5), 1.0), 0.0);
  EXPECT_EQ(in_repairs(nodes_of(1e-3, 500), 1.0), 0.0);
  Process shrinks = nodes_of(3.0, 5);
  shrinks.spares.reset();
  EXPECT_EQ(in_repairs(shrinks, 1.0), 0.0);
}

// Campaigns of a tenth of a repair to ten of them, within four standard errors of their simulation.
TEST(waiting_for_nodes, agrees_with_the_simulation_of_short_campaigns) {
  for (const double length : {0.1, 0.7, 3.0, 10.0}) {
    for (const std::int64_t spares : {0, 2, 4, 8}) {
      Process process = nodes_of(3.0, spares);
      process.downtime = {Seconds(30), Seconds(180)};
      process.interval = best_interval(process.failures(), Seconds(2), Seconds(1));
      Process unlimited = process;
      unlimited.spares.reset();
      const Seconds work = process.repair * length, running = work / shares_of(unlimited).useful;
      const Seconds expected = running + waiting_for_nodes(process, running);
      const auto simulated = simulate_campaigns(process, work, orrery::test::cases(20'000), 11, 2);
      EXPECT_NEAR(simulated.mean.value(), expected.value(), 4.0 * simulated.standard_error.value())
          << length << " repairs, " << spares << " spares";
    }
  }
}

}  // namespace
}  // namespace orrery::campaign::waiting_test
