// The optimizer update by the host's processors.
#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/network/fabric.hpp"
#include "orrery/parallel/item_times.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::host_optimizer_test {
namespace {

// A dense model on 8 devices: weights of 2 B, their master copy of 4 B, two moments of 4 B, gradients of 4 B.
test::Case dense_case(int zero) {
  test::Case c;
  c.model = test::llama(8, 4096, 32, 8, 14336, 128256);
  c.job = {64, 4096, hardware::Precision::bf16, Task::pretrain};
  c.plan.dp = 8;
  c.plan.zero = zero;
  c.plan.offload.optimizer = true;
  c.plan.optimizer_device = OptimizerDevice::host;
  c.cluster = test::cluster_of({8});
  c.cluster.second_tier = {1024_GiB, 50_GBps, 10_us, 100_GBps, 0.5};
  c.stack.optimizer.master_element = 4_B;
  c.stack.optimizer.state_element = 8_B;
  c.stack.gradients.element = 4_B;
  return c;
}

Program program_of(const test::Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack); }

// Items of the end of a step of the first stage.
std::vector<Item> finish_of(const Program& program) {
  std::vector<Item> items;
  for (const BlockUse& use : program.classes.front().finish) {
    const Block& block = program.block(use.work);
    items.insert(items.end(), block.items.begin(), block.items.end());
  }
  return items;
}

const CollectiveCall* update_of(const std::vector<Item>& items) {
  for (const Item& item : items) {
    if (item.name == "optimizer.update") { return &item.collective()->call; }
  }
  return nullptr;
}

Seconds time_of_update(const test::Case& c) {
  const Program program = program_of(c);
  const auto items = finish_of(program);
  return price_call(*update_of(items), network::Fabric(c.cluster), program.mesh);
}

bool has(const std::vector<Item>& items, std::string_view name) {
  return std::any_of(items.begin(), items.end(), [&](const Item& item) { return item.name == name; });
}

// Master copy and moments: 2 x 12 B; gradient 4 B and weight 2 B.
TEST(HostOptimizer, adam_touches_30_bytes_a_weight) {
  const test::Case c = dense_case(0);
  const HostOptimizer host = host_optimizer(c.stack, c.plan, 2_B, 1e9, 0.0);
  EXPECT_EQ(host.stored, Bytes(12e9));
  EXPECT_EQ(host.touched, Bytes(30e9));
  EXPECT_EQ(host.gradients, Bytes(4e9));
  EXPECT_EQ(host.weights, Bytes(2e9));
}

// 30 B at half of 100 GB/s, 4 B at 50 GB/s: the host is the slowest; with 1000 GB/s, the gradients are.
TEST(HostOptimizer, takes_as_long_as_the_slowest_of_copies_and_update) {
  test::Case c = dense_case(0);
  const double weights = program_of(c).classes.front().parameters;
  EXPECT_NEAR(time_of_update(c).value(), 10e-6 + weights * 30.0 / 50e9, 1e-9);
  c.cluster.second_tier.memory_bandwidth = 1000_GBps;
  EXPECT_NEAR(time_of_update(c).value(), 10e-6 + weights * 4.0 / 50e9, 1e-9);
  c.cluster.second_tier.memory_bandwidth = 5000_GBps;
  c.stack.gradients.element = 1_B;  // less than the weights that come back
  EXPECT_NEAR(time_of_update(c).value(), 10e-6 + weights * 2.0 / 50e9, 1e-9);
}

// A replica updates its shard; the device has neither state nor kernels of the optimizer.
TEST(HostOptimizer, the_state_leaves_the_device) {
  for (int zero = 0; zero <= 3; ++zero) {
    test::Case c = dense_case(zero);
    const Program program = program_of(c);
    const auto items = finish_of(program);
    EXPECT_FALSE(has(items, "optimizer.step"));
    EXPECT_FALSE(has(items, "optimizer.stream"));
    const double owned = program.classes.front().parameters / (zero == 0 ? 1.0 : 8.0);
    const MemoryNeed& need = program.memory.front();
    EXPECT_EQ(need.optimizer, Bytes(0));
    EXPECT_DOUBLE_EQ(need.offloaded.value(), 12.0 * owned);
    EXPECT_DOUBLE_EQ(update_of(items)->update.gradients.value(), 4.0 * owned);
    c.plan.optimizer_device = OptimizerDevice::device;
    const MemoryNeed streamed = program_of(c).memory.front();
    EXPECT_GT(streamed.optimizer, Bytes(0));  // of two neighbouring parts
    EXPECT_EQ(streamed.offloaded, need.offloaded);
    EXPECT_EQ(streamed.gradients, need.gradients);
    EXPECT_EQ(streamed.total() - streamed.optimizer, need.total());
  }
}

// Shards that are the master copy exist on the device; the host has its own.
TEST(HostOptimizer, the_host_has_a_copy_of_weights_that_are_their_own_master) {
  test::Case c = dense_case(3);
  c.stack.optimizer.shards_are_master = true;
  const HostOptimizer host = host_optimizer(c.stack, c.plan, 2_B, 8e9, 0.0);
  EXPECT_EQ(host.stored, Bytes(12e9));
  EXPECT_EQ(host.touched, Bytes(28e9));  // nothing is written a second time in 2 B
  EXPECT_EQ(host.weights, Bytes(4e9));
}

// Offloaded shards are updated where they are stored; whole weights of ZeRO-1 are gathered over the replicas first.
TEST(HostOptimizer, offloaded_weights_do_not_come_back) {
  for (int zero = 0; zero <= 3; ++zero) {
    test::Case c = dense_case(zero);
    c.plan.offload.weights = true;
    const auto items = finish_of(program_of(c));
    const bool in_place = zero == 0 || zero == 3;
    EXPECT_EQ(update_of(items)->update.weights == Bytes(0), in_place) << zero;
    EXPECT_EQ(has(items, "weights.store"), !in_place) << zero;
  }
}

RC_GTEST_PROP(HostOptimizer, a_faster_host_never_takes_longer, ()) {
  const int zero = *rc::gen::inRange(0, 4);
  test::Case c = dense_case(zero);
  c.cluster.second_tier.memory_bandwidth = BytesPerSecond(1e9 * *rc::gen::inRange(1, 3000));
  const Seconds before = time_of_update(c);
  c.cluster.second_tier.memory_bandwidth *= 1.0 + 0.01 * *rc::gen::inRange(0, 1000);
  const Seconds after = time_of_update(c);
  RC_ASSERT(after <= before);
  // The copies remain, however fast the host is.
  const double owned = program_of(c).classes.front().parameters / (zero == 0 ? 1.0 : 8.0);
  RC_ASSERT(after.value() >= owned * 4.0 / 50e9);
}

TEST(HostOptimizer, needs_offloaded_state_and_the_bandwidth_of_the_host_s_memory) {
  test::Case c = dense_case(1);
  EXPECT_TRUE(is_valid(c.cluster, c.plan));
  c.cluster.second_tier.memory_bandwidth = BytesPerSecond(0);
  ASSERT_EQ(problems(c.cluster, c.plan).size(), 1U);
  EXPECT_EQ(problems(c.cluster, c.plan).front().text(),
            "--optimizer-device: host needs the bandwidth of the host's own memory, which cluster \"plain\" does not "
            "give (second_tier.memory_bandwidth)");
  EXPECT_TRUE(is_valid(c.model, c.job, c.plan, 8));
  c.plan.offload.optimizer = false;
  const auto found = problems(c.model, c.job, c.plan, 8);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(
      found.front().text(),
      "--optimizer-device: host needs --offload optimizer, and not gradients: the host updates what it stores, and "
      "reduces nothing");
}

}  // namespace
}  // namespace orrery::parallel::host_optimizer_test
