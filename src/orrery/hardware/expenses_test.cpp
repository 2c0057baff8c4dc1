#include "orrery/hardware/expenses.hpp"

#include <gtest/gtest.h>

namespace orrery::hardware::expenses_test {
namespace {

// Two nodes of 8.
Cluster two_nodes() {
  Cluster cluster;
  cluster.name = "box";
  cluster.accelerator.name = "chip";
  cluster.dimensions.resize(2);
  cluster.dimensions[0].size = 8;
  cluster.dimensions[1].size = 2;
  cluster.devices = 16;
  return cluster;
}

TEST(Expenses, missing_figures_give_no_expense) {
  const Cluster cluster = two_nodes();
  EXPECT_FALSE(cost_rate(cluster));
  EXPECT_FALSE(power(cluster));
  EXPECT_EQ(missing_price(cluster),
            "usd_per_device_hour or node_price_usd of cluster \"box\", or price_usd of accelerator \"chip\"");
  EXPECT_EQ(missing_power(cluster), "node_power_watts of cluster \"box\", or tdp_watts of accelerator \"chip\"");
}

TEST(Expenses, rent_comes_before_prices_and_nodes_before_accelerators) {
  Cluster cluster = two_nodes();
  cluster.accelerator.price_usd = 126'144;
  // 16 x 126,144 USD in 4 x 365 x 86,400 = 126,144,000 s: 0.016 USD a second.
  EXPECT_DOUBLE_EQ(cost_rate(cluster)->value, 0.016);
  EXPECT_EQ(cost_rate(cluster)->basis, "126144 USD per accelerator, nothing else included, depreciated over 4 years");
  cluster.node_price_usd = 126'144'000;
  EXPECT_DOUBLE_EQ(cost_rate(cluster)->value, 2.0);
  EXPECT_EQ(cost_rate(cluster)->basis, "126144000 USD per node of 8, depreciated over 4 years");
  cluster.usd_per_device_hour = 2.25;
  EXPECT_DOUBLE_EQ(cost_rate(cluster)->value, 0.01);  // 16 x 2.25 / 3600
  EXPECT_EQ(cost_rate(cluster)->basis, "rented at 2.25 USD per device and hour");
}

TEST(Expenses, power_is_what_makers_rate) {
  Cluster cluster = two_nodes();
  cluster.accelerator.tdp_watts = 700;
  EXPECT_DOUBLE_EQ(power(cluster)->value, 11'200.0);
  EXPECT_EQ(power(cluster)->basis, "nameplate power, 700 W per accelerator, nothing else included");
  cluster.node_power_watts = 10'000;
  EXPECT_DOUBLE_EQ(power(cluster)->value, 20'000.0);
  EXPECT_EQ(power(cluster)->basis, "nameplate power, 10000 W per node of 8");
}

// Half a node costs half of it and draws half.
TEST(Expenses, a_part_of_a_node_has_its_share) {
  Cluster cluster = two_nodes();
  cluster.node_power_watts = 10'000;
  cluster.node_price_usd = 300'000;
  const auto half = scaled(cluster, 4), two = scaled(cluster, 16);
  ASSERT_TRUE(half && two);
  EXPECT_DOUBLE_EQ(power(*half)->value, 5'000.0);
  EXPECT_DOUBLE_EQ(4.0 * cost_rate(*half)->value, cost_rate(*two)->value);
}

}  // namespace
}  // namespace orrery::hardware::expenses_test
