#include "orrery/campaign/simulate.hpp"

#include <array>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"

namespace orrery::campaign::simulate_test {
namespace {

constexpr double kDay = 86'400.0;
const Hertz kLlama3{419.0 / (54.0 * kDay)};

Process llama3() {
  Process process;
  process.job_failures = kLlama3;
  process.downtime = {Seconds(30), Seconds(600)};
  process.interval = best_interval(kLlama3, Seconds(3), Seconds(0));
  return process;
}

// The mean of many campaigns is within four standard errors of the closed form.
void expect_agreement(const Process& process, Seconds work, std::int64_t count, const std::string& name) {
  const auto simulated = simulate_campaigns(process, work, test::cases(count), 7, 2);
  const Seconds expected = work / shares_of(process).useful;
  EXPECT_NEAR(simulated.mean.value(), expected.value(), 4.0 * simulated.standard_error.value()) << name;
  EXPECT_GT(simulated.standard_error, Seconds(0));
}

TEST(simulate_campaigns, agrees_with_one_level) {
  for (const double pause : {3.0, 30.0, 300.0}) {
    for (const double restart : {180.0, 600.0, 900.0}) {
      Process process = llama3();
      process.interval = best_interval(kLlama3, Seconds(pause), Seconds(0));
      process.downtime.restart = Seconds(restart);
      expect_agreement(process, Seconds(50 * kDay), 2000, std::to_string(pause) + " " + std::to_string(restart));
    }
  }
}

TEST(simulate_campaigns, agrees_where_failures_are_as_fast_as_restarts) {
  for (const double mean : {3600.0, 900.0, 300.0}) {
    Process process;
    process.job_failures = Hertz(1.0 / mean);
    process.downtime = {Seconds(0), Seconds(300)};
    process.interval = best_interval(process.job_failures, Seconds(60), Seconds(0));
    expect_agreement(process, Seconds(10 * kDay), 500, std::to_string(mean));
  }
}

TEST(simulate_campaigns, agrees_with_flushes) {
  for (const double flush : {60.0, 300.0}) {
    Process process = llama3();
    process.interval = {Seconds(297), Seconds(3), Seconds(flush)};
    expect_agreement(process, Seconds(50 * kDay), 2000, std::to_string(flush));
  }
}

TEST(simulate_campaigns, agrees_with_two_tiers) {
  for (const double share : {1.0, 0.95, 0.8, 0.0}) {
    Process process;
    process.job_failures = kLlama3;
    process.tiers.emplace();
    process.tiers->memory = {Seconds(60), Seconds(0.5), Seconds(0)};
    process.tiers->storage_pause = Seconds(10);
    process.tiers->pieces = 60;
    process.tiers->recoverable = share;
    process.tiers->memory_downtime = Seconds(150);
    process.tiers->storage_downtime = Seconds(900);
    expect_agreement(process, Seconds(200 * kDay), 500, std::to_string(share));
  }
}

TEST(simulate_campaigns, agrees_with_silent_corruption) {
  Process process = llama3();
  process.corruptions = Hertz(1.0 / kDay);
  process.validate_every = Seconds(7200);
  process.validation_latency = Seconds(600);
  expect_agreement(process, Seconds(50 * kDay), 2000, "corruption");
}

// Nodes in repair exceed the spares 12.9 % of the time (spares_test). The closed form counts what overlaps with a
// restart twice, so 0.2 % of the time are allowed.
TEST(simulate_campaigns, agrees_with_spares) {
  Process process = llama3();
  process.job_failures = Hertz(0);
  process.nodes = {{Hertz(2048 * 6.5e-3 / kDay), 1}};
  process.repair = Seconds(2 * kDay);
  process.interval = best_interval(process.failures(), Seconds(3), Seconds(0));
  for (const std::int64_t spares : {26, 32, 39}) {
    process.spares = spares;
    const Seconds work(200 * kDay);
    const auto simulated = simulate_campaigns(process, work, test::cases(400), 7, 2);
    const Seconds expected = work / shares_of(process).useful;
    EXPECT_NEAR(simulated.mean / expected, 1.0, 4.0 * (simulated.standard_error / expected) + 2e-3) << spares;
  }
}

// 48.6 useful days at the rate of Llama 3, C 3 s, 630 s in which no failure strikes: 52.56 days, standard deviation
// 0.175 days.
TEST(luck_of, llama3) {
  Process process = llama3();
  process.downtime = {Seconds(630), Seconds(0)};
  const auto luck = luck_of(process, Seconds(48.6 * kDay));
  EXPECT_NEAR(luck.mean.value() / kDay, 52.56, 5e-3);
  EXPECT_NEAR(std::sqrt(luck.variance) / kDay, 0.175, 5e-4);
  const auto simulated = simulate_campaigns(process, Seconds(48.6 * kDay), test::cases(4000), 3, 2);
  const double deviation = simulated.standard_error.value() * std::sqrt(static_cast<double>(simulated.count));
  EXPECT_NEAR(deviation / std::sqrt(luck.variance), 1.0, 4.0 / std::sqrt(2.0 * static_cast<double>(simulated.count)));
}

// Restarts that take up to a quarter of the time between failures and are struck by them; flushes, which are lost work.
TEST(luck_of, counts_failures_that_strike_a_restart) {
  for (const double restart : {0.0, 60.0, 600.0, 1800.0}) {
    Process process;
    process.job_failures = Hertz(12.0 / kDay);
    process.downtime = {Seconds(30), Seconds(restart)};
    process.interval = best_interval(process.job_failures, Seconds(2), Seconds(3));
    const auto luck = luck_of(process, Seconds(20 * kDay));
    const auto simulated = simulate_campaigns(process, Seconds(20 * kDay), test::cases(10'000), 5, 2);
    const double deviation = simulated.standard_error.value() * std::sqrt(static_cast<double>(simulated.count));
    EXPECT_NEAR(deviation / std::sqrt(luck.variance), 1.0, 4.0 / std::sqrt(2.0 * static_cast<double>(simulated.count)))
        << restart;
  }
}

TEST(simulate_campaigns, does_not_depend_on_the_number_of_threads) {
  Process process = llama3();
  process.corruptions = Hertz(1.0 / kDay);
  process.validate_every = Seconds(3600);
  const auto one = simulate_campaigns(process, Seconds(10 * kDay), 200, 5, 1);
  const auto four = simulate_campaigns(process, Seconds(10 * kDay), 200, 5, 4);
  EXPECT_EQ(one.mean, four.mean);
  EXPECT_EQ(one.p10, four.p10);
  EXPECT_EQ(one.p90, four.p90);
  EXPECT_EQ(one.failures, four.failures);
  EXPECT_NE(one.mean, simulate_campaigns(process, Seconds(10 * kDay), 200, 6, 1).mean);
}

TEST(shares_of, sum_to_one) {
  Process process = llama3();
  EXPECT_NEAR(shares_of(process).total(), 1.0, 1e-12);
  process.corruptions = Hertz(1.0 / kDay);
  process.validate_every = Seconds(7200);
  process.nodes = {{Hertz(2048 * 4e-3 / kDay), 1}, {Hertz(128 * 1e-3 / kDay), 16}};
  process.repair = Seconds(2 * kDay);
  process.spares = 20;
  const Shares shares = shares_of(process);
  EXPECT_NEAR(shares.total(), 1.0, 1e-12);
  for (const double part : {shares.useful, shares.pauses, shares.lost_work, shares.detection, shares.restart,
                            shares.corruption, shares.short_of_spares}) {
    EXPECT_GT(part, 0.0);
  }
}

TEST(shares_of, twice_the_nodes_are_twice_the_rate) {
  Process one = llama3(), two = llama3();
  one.nodes = {{Hertz(1e-5), 1}};
  two.nodes = {{Hertz(5e-6), 1}, {Hertz(5e-6), 1}};
  EXPECT_DOUBLE_EQ(shares_of(one).useful, shares_of(two).useful);
}

}  // namespace
}  // namespace orrery::campaign::simulate_test
