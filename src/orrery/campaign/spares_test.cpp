#include "orrery/campaign/spares.hpp"

#include <array>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace orrery::campaign::spares_test {
namespace {

// 2,048 nodes, 6.5 failures per 1,000 node-days, repairs of 2 days: a = 2048 x 0.0065 x 2 = 26.624.
constexpr double kInRepair = 26.624;

std::vector<double> nodes_in_repair(double mean) {
  const std::array classes = {RepairClass{1, mean}};
  return repair_distribution(classes);
}

TEST(repair_distribution, of_single_nodes_is_poisson) {
  for (const double mean : {0.0, 0.3, kInRepair, 2000.0}) {
    const auto distribution = nodes_in_repair(mean);
    EXPECT_NEAR(std::accumulate(distribution.begin(), distribution.end(), 0.0), 1.0, 1e-12);
    EXPECT_NEAR(mean_of(distribution), mean, 1e-9 * (1.0 + mean));
    for (std::size_t k = 0; k < distribution.size(); k += 7) {
      const auto n = static_cast<double>(k);
      const double log_p = mean > 0.0 ? n * std::log(mean) - mean - std::lgamma(n + 1.0) : (k == 0 ? 0.0 : -HUGE_VAL);
      EXPECT_NEAR(distribution[k], std::exp(log_p), 1e-12);
    }
  }
}

TEST(spares_for, is_a_quantile_of_the_nodes_in_repair) {
  const auto distribution = nodes_in_repair(kInRepair);
  EXPECT_EQ(spares_for(0.5, distribution), 26);
  EXPECT_EQ(spares_for(0.99, distribution), 39);
  EXPECT_EQ(spares_for(0.999, distribution), 44);
}

// 128 racks of 16 nodes at 1 per 1,000 rack-days: 0.256 racks in repair. Variance 26.624 + 0.256 x 16^2.
TEST(spares_for, racks_that_fail_whole_need_half_as_many_again) {
  const std::array classes = {RepairClass{1, kInRepair}, RepairClass{16, 0.256}};
  const auto distribution = repair_distribution(classes);
  EXPECT_EQ(spares_for(0.99, distribution), 61);
  EXPECT_NEAR(mean_of(distribution), kInRepair + 0.256 * 16, 1e-9);
}

TEST(shortage, with_32_spares) {
  const auto out = shortage(32, nodes_in_repair(kInRepair));
  EXPECT_NEAR(out.share, 0.128887, 1e-6);
  EXPECT_NEAR(out.missing, 0.432, 5e-4);
}

TEST(throughput, without_spares_and_with_32) {
  const auto distribution = nodes_in_repair(kInRepair);
  EXPECT_NEAR(fixed_throughput(2048, 16, 0, distribution), 0.812207, 1e-6);  // e^(-26.624 x 16 / 2048)
  EXPECT_NEAR(fixed_throughput(2048, 16, 0, distribution), std::exp(-kInRepair * 16 / 2048), 1e-9);
  EXPECT_NEAR(regrouped_throughput(2048, 16, 0, distribution), 0.983515, 1e-6);
  EXPECT_NEAR(regrouped_throughput(2048, 16, 32, distribution), 0.998993, 1e-6);
}

// Regrouping never loses more replicas than fixed groups do. (Of replicas of one node, fixed groups count a node that
// fails twice once.)
TEST(throughput, regrouped_is_at_least_fixed) {
  for (const double mean : {0.1, 5.0, 40.0}) {
    const auto distribution = nodes_in_repair(mean);
    for (const std::int64_t replica : {4, 32}) {
      for (const std::int64_t spares : {0, 8}) {
        EXPECT_GE(regrouped_throughput(256, replica, spares, distribution),
                  fixed_throughput(256, replica, spares, distribution));
      }
    }
  }
}

// Tables of order statistics: E[max of 8] = 1.4236.
TEST(expected_maximum, of_standard_normals) {
  EXPECT_NEAR(expected_maximum(1), 0.0, 1e-6);
  EXPECT_NEAR(expected_maximum(2), 1.0 / std::sqrt(M_PI), 1e-6);
  EXPECT_NEAR(expected_maximum(8), 1.4236, 1e-4);
  EXPECT_NEAR(expected_maximum(64), 2.3437, 1e-4);
  EXPECT_NEAR(expected_maximum(512), 3.0439, 1e-4);
  EXPECT_NEAR(expected_maximum(2048), 3.4418, 1e-4);
  EXPECT_NEAR(expected_maximum(16'384), 3.9714, 1e-4);
}

// Two copies on pairs of 2,048 nodes, two lost: 1 - 1024 / C(2048, 2).
TEST(surviving_share, of_pairs) {
  EXPECT_NEAR(surviving_share(2048, 2, 2), 1.0 - 1024.0 / (2048.0 * 2047.0 / 2.0), 1e-12);
  EXPECT_EQ(surviving_share(2048, 2, 1), 1.0);
  EXPECT_EQ(surviving_share(2048, 1, 1), 0.0);
}

// One node of eight in two replicas of four is missing or not, evenly: speeds 1 and 0.6 give 0.8; fixed replicas lose
// half of the job, (1 - 4/8)^1, which is the same replica.
TEST(throughput, takes_the_speed_of_the_replicas_that_are_left) {
  const std::vector<double> distribution = {0.5, 0.5};
  const auto speed = [](std::int64_t nodes) { return nodes == 8 ? 1.0 : (nodes == 4 ? 0.6 : 0.0); };
  EXPECT_NEAR(regrouped_throughput(8, 4, 0, distribution, speed), 0.8, 1e-12);
  EXPECT_NEAR(fixed_throughput(8, 4, 0, distribution, speed), 0.8, 1e-12);
  EXPECT_NEAR(regrouped_throughput(8, 4, 1, distribution, speed), 1.0, 1e-12);
}

// A speed in proportion to nodes is the default.
TEST(throughput, is_proportional_without_a_speed) {
  const std::vector<RepairClass> classes = {{1, 5.0}};
  const auto distribution = repair_distribution(classes);
  const auto speed = [](std::int64_t nodes) { return static_cast<double>(nodes) / 256.0; };
  for (const std::int64_t replica : {1, 2, 16}) {
    EXPECT_NEAR(regrouped_throughput(256, replica, 3, distribution, speed),
                regrouped_throughput(256, replica, 3, distribution), 1e-7);
    EXPECT_NEAR(fixed_throughput(256, replica, 3, distribution, speed), fixed_throughput(256, replica, 3, distribution),
                1e-7);
  }
}

}  // namespace
}  // namespace orrery::campaign::spares_test
