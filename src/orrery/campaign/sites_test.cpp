#include "orrery/campaign/sites.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "orrery/campaign/waiting.hpp"
#include "orrery/core/test_effort.hpp"

namespace orrery::campaign::sites_test {
namespace {

constexpr double kDay = 86'400.0;

// Its checkpoint interval is the best one for its failures, or for eight a day if it has none.
Process site(std::int64_t sites, double round_s, double failures_per_day, Seconds pause = Seconds(2)) {
  Process process;
  process.job_failures = Hertz(failures_per_day / kDay);
  process.downtime = {Seconds(30), Seconds(600)};
  const Hertz rate = failures_per_day > 0.0 ? process.job_failures : Hertz(8.0 / kDay);
  process.interval = best_interval(rate, pause, pause * 1.5);
  process.sites = sites;
  process.round = Seconds(round_s);
  return process;
}

Seconds waits(const Process& process) { return waiting_for_sites(process, long_run_shortage(process)); }

// Rounds are so short that at most one site fails in one: the others wait as long as it is down. K - 1 sites wait for
// each failure of one of K: K - 1 times the time that failures cost one site.
TEST(waiting_for_sites, of_rare_failures_is_the_sum_of_all_other_sites) {
  const Process process = site(4, 60.0, 1.0);
  const Shares shares = shares_of(process);
  const double lost = (shares.lost_work + shares.detection + shares.restart) / shares.useful * 60.0;
  EXPECT_NEAR(waits(process).value() / (3.0 * lost), 1.0, 0.02);
}

// In a long round every site has many failures: its time is normal, and the largest of K is x standard deviations above
// the mean (1.0294 for four).
TEST(waiting_for_sites, of_long_rounds_is_that_of_normal_times) {
  const Process process = site(4, 40 * kDay, 24.0);
  const double deviation = std::sqrt(luck_of(process, process.round).variance);
  EXPECT_NEAR(waits(process).value() / (1.0294 * deviation), 1.0, 0.03);
}

TEST(waiting_for_sites, grows_with_sites_and_is_nothing_without_failures) {
  double before = 0.0;
  for (const std::int64_t sites : {2, 4, 16, 256, 100'000}) {
    const double now = waits(site(sites, 900.0, 8.0)).value();
    EXPECT_GT(now, before);
    before = now;
  }
  EXPECT_EQ(waits(site(1, 900.0, 8.0)), Seconds(0));
  EXPECT_EQ(waits(site(16, 900.0, 0.0)), Seconds(0));
  Process free = site(16, 900.0, 8.0);  // nothing is lost, and nothing takes time
  free.downtime = {};
  free.interval = {};
  EXPECT_EQ(waits(free), Seconds(0));
}

// Work / useful share, and a wait in every round.
void expect_agreement(const Process& process, Seconds work, std::int64_t count, const std::string& name) {
  const auto simulated = simulate_campaigns(process, work, orrery::test::cases(count), 7, 2);
  const Seconds expected = work / shares_of(process).useful + waits(process) * (work / process.round);
  EXPECT_NEAR(simulated.mean.value(), expected.value(), 4.0 * simulated.standard_error.value()) << name;
  EXPECT_GT(simulated.mean, work / shares_of(process).useful) << name;
}

TEST(waiting_for_sites, agrees_with_the_simulation_of_failures) {
  for (const std::int64_t sites : {2, 8, 32}) {
    for (const double round : {300.0, 3'000.0, 30'000.0}) {
      const Process process = site(sites, round, 8.0);
      expect_agreement(process, process.round * std::ceil(30 * kDay / round), 100,
                       std::to_string(sites) + " sites, rounds of " + std::to_string(round));
    }
  }
}

// Failures as fast as restarts strike restarts and the work that is done again; rounds as short as the checkpoint
// interval have losses that depend on their place in it.
TEST(waiting_for_sites, agrees_with_the_simulation_of_frequent_failures_and_short_rounds) {
  for (const double pause : {2.0, 60.0}) {
    expect_agreement(site(4, 2'000.0, 100.0, Seconds(pause)), Seconds(2'000.0 * 1000), 100, "MTBF of 14 min");
    expect_agreement(site(8, 3'000.0, 60.0, Seconds(pause)), Seconds(3'000.0 * 600), 100, "MTBF of 24 min");
    expect_agreement(site(32, 600.0, 24.0, Seconds(pause)), Seconds(600.0 * 3000), 100, "MTBF of 1 h");
    expect_agreement(site(8, 3'000.0, 0.5, Seconds(pause)), Seconds(3'000.0 * 600), 100, "MTBF of 2 days");
  }
  expect_agreement(site(4, 100'000.0, 24.0), Seconds(100'000.0 * 26), 100, "rounds of 28 h");
}

TEST(waiting_for_sites, agrees_with_the_simulation_of_everything_else) {
  Process process = site(8, 1'200.0, 4.0);
  process.corruptions = Hertz(0.5 / kDay);
  process.validate_every = Seconds(7200);
  process.validation_latency = Seconds(600);
  expect_agreement(process, Seconds(1'200.0 * 3000), 100, "corruption");
  process = site(8, 1'200.0, 0.0);
  process.nodes = {{Hertz(4.0 / kDay), 1}};
  process.repair = Seconds(2 * kDay);
  process.spares = 16;
  expect_agreement(process, Seconds(1'200.0 * 3000), 100, "missing nodes");
  process = site(8, 1'200.0, 8.0);
  process.tiers.emplace();
  process.tiers->memory = {Seconds(60), Seconds(0.5), Seconds(0)};
  process.tiers->storage_pause = Seconds(10);
  process.tiers->pieces = 60;
  process.tiers->recoverable = 0.8;
  process.tiers->memory_downtime = Seconds(150);
  process.tiers->storage_downtime = Seconds(900);
  expect_agreement(process, Seconds(1'200.0 * 3000), 100, "two tiers");
}

// A campaign shorter than a repair: most of its waiting for nodes is that of nodes which are in repair at its start.
TEST(waiting_for_sites, agrees_with_the_simulation_of_short_campaigns) {
  Process process = site(4, 600.0, 0.0);
  process.nodes = {{Hertz(0.5 / kDay), 1}};
  process.repair = Seconds(2 * kDay);
  process.spares = 2;
  const Seconds work = process.round * 60;
  Process unlimited = process;
  unlimited.spares.reset();
  const Seconds running = work / shares_of(unlimited).useful, stands = waiting_for_nodes(process, running);
  const Seconds each = waiting_for_sites(process, stands / (running + stands));
  const auto simulated = simulate_campaigns(process, work, orrery::test::cases(20'000), 7, 2);
  EXPECT_NEAR(simulated.mean.value(), (running + stands + each * 60).value(), 4.0 * simulated.standard_error.value());
  EXPECT_GT(simulated.mean - running, (stands + each * 60) * 0.5);
}

}  // namespace
}  // namespace orrery::campaign::sites_test
