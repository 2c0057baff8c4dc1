#include "orrery/jobs/simulate.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/jobs/servers.hpp"

namespace orrery::jobs::simulate_test {
namespace {

// Jobs of one width and a load of `load` jobs at a time on average, without a queue.
File loss_system(std::int64_t servers, double load, Service service) {
  File file;
  file.servers = servers;
  file.queue = 0;
  file.arrivals = {Process::poisson, Seconds(1.0), test::cases(std::int64_t{1'000'000}), {}, {}};
  Kind kind;
  kind.name = "job";
  kind.sequential = Seconds(load);
  kind.widths = {1};
  kind.service = service;
  file.kinds = {kind};
  return file;
}

double erlang_b(int servers, double load) {
  double b = 1.0;
  for (int k = 1; k <= servers; ++k) { b = load * b / (k + load * b); }
  return b;
}

TEST(simulate_jobs, blocks_as_erlang_b_whatever_the_service) {
  EXPECT_NEAR(erlang_b(8, 6), 0.121876, 1e-6);
  EXPECT_NEAR(erlang_b(32, 24), 0.022095, 1e-6);
  EXPECT_NEAR(erlang_b(32, 32), 0.128633, 1e-6);
  const std::vector<std::pair<int, double>> cases = {{8, 6.0}, {32, 24.0}, {32, 32.0}};
  for (const auto& [servers, load] : cases) {
    for (const auto service : {Service::fixed, Service::exponential}) {
      const auto result = simulate_jobs(loss_system(servers, load, service));
      EXPECT_NEAR(result.blocking_rate, erlang_b(servers, load), 4.0 * result.blocking_standard_error);
      EXPECT_LT(result.blocking_standard_error, 3e-3);
    }
  }
}

TEST(simulate_jobs, blocks_nothing_if_it_ends_before_the_first_arrival) {
  File file = loss_system(8, 6.0, Service::fixed);
  file.arrivals.process = Process::trace;
  file.arrivals.times = {Seconds(10.0)};
  file.arrivals.count = 1;
  file.arrivals.end = Seconds(0.5);
  const auto result = simulate_jobs(file);
  EXPECT_EQ(result.arrived, 0);
  EXPECT_EQ(result.blocking_rate, 0.0);
  EXPECT_EQ(result.utilisation, 0.0);
}

// Kaufman (1981) and Roberts: j q_j = sum a_i b_i q_(j - b_i). Loads 6, 1.5 and 0.4 of widths 1, 4 and 16 on 32
// servers.
TEST(simulate_jobs, blocks_wide_jobs_as_kaufman_and_roberts) {
  const std::vector<double> loads = {6.0, 1.5, 0.4}, expected = {0.014665, 0.072293, 0.391206};
  const std::vector<std::int64_t> widths = {1, 4, 16};
  File file = loss_system(32, 1.0, Service::exponential);
  file.kinds.clear();
  const double rate = 7.9;  // arrivals a second of all kinds; each job of one second
  file.arrivals.interarrival = Seconds(1.0 / rate);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    Kind kind;
    kind.name = "width " + std::to_string(widths[i]);
    kind.weight = loads[i];
    kind.sequential = Seconds(1.0);
    kind.widths = {widths[i]};
    kind.times = {Seconds(1.0)};
    kind.service = Service::exponential;
    file.kinds.push_back(kind);
  }
  const auto result = simulate_jobs(file);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& kind = result.kinds[i];
    // Blocked jobs come in runs: five times the error of independent ones.
    const double error = std::sqrt(expected[i] * (1 - expected[i]) / static_cast<double>(kind.arrived));
    EXPECT_NEAR(kind.blocking_rate, expected[i], 5.0 * 2.5 * error) << kind.kind;
  }
}

// Arrivals every 1,000 s, exponential times of 6,000 s on 8 servers:
// 1 / sum_k C(c, k) prod_(i <= k) (1 - f_i) / f_i with f_i = e^(-i T / mean) = 0.054105.
TEST(simulate_jobs, blocks_fixed_arrivals_as_the_closed_form) {
  double sum = 1.0, product = 1.0, choose = 1.0;
  for (int k = 1; k <= 8; ++k) {
    const double f = std::exp(-k / 6.0);
    choose *= (8.0 - k + 1.0) / k;
    product *= (1.0 - f) / f;
    sum += choose * product;
  }
  EXPECT_NEAR(1.0 / sum, 0.054105, 1e-6);
  File file = loss_system(8, 6000.0, Service::exponential);
  file.arrivals.process = Process::fixed;
  file.arrivals.interarrival = Seconds(1000);
  const auto result = simulate_jobs(file);
  EXPECT_NEAR(result.blocking_rate, 1.0 / sum, 4.0 * result.blocking_standard_error);
}

// Erlang C: 24 of 32 servers busy on average; 8.2886 % of jobs wait. Little's law: in system = rate x (wait + time).
TEST(simulate_jobs, waits_as_erlang_c) {
  const double b = erlang_b(32, 24), c = b / (1.0 - 24.0 / 32.0 * (1.0 - b));
  EXPECT_NEAR(c, 0.082886, 1e-6);
  File file = loss_system(32, 24.0, Service::exponential);
  file.queue.reset();
  const auto result = simulate_jobs(file);
  EXPECT_EQ(result.blocked, 0);
  EXPECT_NEAR(result.waited_share, c, 0.004);
  const auto& kind = result.kinds.front();
  EXPECT_NEAR(kind.mean_in_system, kind.mean_wait_s + kind.mean_time_s, 0.005 * kind.mean_in_system);
  EXPECT_NEAR(result.utilisation, 0.75, 0.005);
}

// Pollaczek and Khinchine: whole-cluster jobs of fixed time S at rho 0.8 wait lam S^2 / (2 (1 - rho)) = 2 S.
TEST(simulate_jobs, waits_as_pollaczek_and_khinchine) {
  File file = loss_system(1, 0.8, Service::fixed);
  file.queue.reset();
  const auto result = simulate_jobs(file);
  EXPECT_NEAR(result.mean_wait_s, 2.0 * 0.8, 0.05);
  EXPECT_NEAR(result.mean_wait_s, 2.0 * 0.8, 4.0 * result.mean_wait_standard_error_s);
  EXPECT_LT(result.mean_wait_standard_error_s, 0.05);
}

File two_widths(PolicyKind policy) {
  File file;
  file.servers = 10;
  file.policy = policy;
  file.arrivals.process = Process::trace;
  file.arrivals.times = {Seconds(0), Seconds(1), Seconds(2)};
  Kind wide;
  wide.name = "wide";
  wide.sequential = Seconds(60);
  wide.widths = {6};
  wide.times = {Seconds(10)};
  file.kinds = {wide};
  return file;
}

// Jobs of 6 of 10 servers: one at a time. By hand: starts at 0, 10, 20.
TEST(simulate_jobs, first_come_first_served_by_hand) {
  const auto result = simulate_jobs(two_widths(PolicyKind::fcfs));
  ASSERT_EQ(result.jobs.size(), 3U);
  EXPECT_EQ(result.jobs[0].start_s, 0.0);
  EXPECT_EQ(result.jobs[1].start_s, 10.0);
  EXPECT_EQ(result.jobs[2].start_s, 20.0);
  EXPECT_DOUBLE_EQ(result.utilisation, 3 * 60.0 / (10 * 30.0));  // three times 6 servers for 10 s, of 10 for 30 s
  EXPECT_EQ(result.mean_wait_s, (0.0 + 9.0 + 18.0) / 3.0);
}

// A narrow job behind a wide one that waits: it overtakes if it ends before the wide one can start.
TEST(simulate_jobs, backfill_never_delays_the_first_job) {
  for (const auto policy : {PolicyKind::fcfs, PolicyKind::backfill}) {
    File file = two_widths(policy);
    file.arrivals.times = {Seconds(0), Seconds(1), Seconds(2), Seconds(3)};
    file.balanced = true;
    Kind narrow = file.kinds.front();
    narrow.name = "narrow";
    narrow.widths = {4};
    narrow.times = {Seconds(5)};
    file.kinds.push_back(narrow);
    const auto result = simulate_jobs(file);
    for (const auto& job : result.jobs) { EXPECT_GE(job.start_s, job.arrival_s); }
    // Wide jobs start as early as without narrow ones: 0 (or the narrow job's end never matters, 6 + 4 = 10).
    double busy = 0.0;
    for (const auto& job : result.jobs) { busy += static_cast<double>(job.width) * (job.end_s - job.start_s); }
    EXPECT_DOUBLE_EQ(busy, 2 * 60.0 + 2 * 20.0);
  }
}

TEST(simulate_jobs, backfill_waits_no_longer_on_average) {
  File file = loss_system(64, 1.0, Service::exponential);
  file.queue.reset();
  file.arrivals.count = 20'000;
  file.kinds.clear();
  for (const std::int64_t width : {1, 8, 48}) {
    Kind kind;
    kind.name = std::to_string(width);
    kind.weight = 1.0 / static_cast<double>(width);
    kind.sequential = Seconds(10);
    kind.widths = {width};
    kind.times = {Seconds(10)};
    kind.service = Service::exponential;
    file.kinds.push_back(kind);
  }
  file.arrivals.interarrival = Seconds(0.7);
  const auto fcfs = simulate_jobs(file);
  file.policy = PolicyKind::backfill;
  const auto backfill = simulate_jobs(file);
  EXPECT_LT(backfill.mean_wait_s, fcfs.mean_wait_s);
}

TEST(simulate_jobs, the_same_seed_gives_the_same_jobs) {
  File file = loss_system(8, 6.0, Service::exponential);
  file.arrivals.count = 1000;
  const auto one = simulate_jobs(file), two = simulate_jobs(file);
  ASSERT_EQ(one.jobs.size(), two.jobs.size());
  for (std::size_t i = 0; i < one.jobs.size(); ++i) { ASSERT_EQ(one.jobs[i].end_s, two.jobs[i].end_s); }
  file.seed = 1;
  EXPECT_NE(one.blocked, simulate_jobs(file).blocked);
}

// 32 servers in 4 groups x 4 racks x 2: two jobs of 16 fit, and then nothing.
TEST(servers, ramp_places_boxes) {
  File file;
  file.servers = 32;
  file.fabric = Fabric::ramp;
  file.shape = {4, 4, 2};
  Servers servers(file);
  const auto one = servers.place(16), two = servers.place(16);
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(servers.place(1));
  servers.release(*one);
  EXPECT_EQ(servers.free(), 16);
  EXPECT_TRUE(servers.place(10).has_value() || servers.place(8).has_value());
  EXPECT_FALSE(servers.could_fit(17));  // no box of 17
  EXPECT_TRUE(servers.could_fit(24));
}

// Worked values of DDLS's function: 1 MB, 100 MB and 1 GB over all 32 servers, 50 ns and 100 ns.
TEST(ramp_all_reduce_s, gives_the_published_times) {
  const RampNetwork network;
  EXPECT_NEAR(ramp_all_reduce_s(network, 1e6, 4, 4, 2) * 1e6, 3.953, 5e-4);
  EXPECT_NEAR(ramp_all_reduce_s(network, 1e8, 4, 4, 2) * 1e6, 246.81, 5e-3);
  EXPECT_NEAR(ramp_all_reduce_s(network, 1e9, 4, 4, 2) * 1e6, 2454.6, 0.05);
  EXPECT_NEAR(ramp_all_reduce_s(network, 1e9, 4, 1, 1) * 1e3, 1.8755, 5e-5);
}

}  // namespace
}  // namespace orrery::jobs::simulate_test
