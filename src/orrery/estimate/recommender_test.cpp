// Estimates of recommenders: parts sum to the total, better hardware is never slower, and the search's bound holds.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_recommenders.hpp"

namespace orrery::estimate::recommender_test {
namespace {

using parallel::test::SeededRandom;
using workload::TableSharding;

struct Case {
  workload::Model model;
  parallel::Job job;
  parallel::Plan plan;
  hardware::Cluster cluster;
  hardware::Stack stack;

  [[nodiscard]] bool is_valid() const {
    return !workload::inconsistency(model) && parallel::is_valid(model, job, plan, cluster.devices);
  }
};

Case any_case(SeededRandom& random) {
  Case c;
  c.model = workload::test::completed_recommender(workload::test::any_recommender(random));
  c.cluster = parallel::test::any_case(random).cluster;
  c.stack = parallel::test::any_stack(random);
  c.plan.dp = c.cluster.devices;
  c.plan.zero = static_cast<int>(random(0, 3));
  c.plan.recompute = random(0, 2) == 0 ? parallel::Recompute::none : parallel::Recompute::full;
  c.plan.micro_batch = random(1, 500);
  c.plan.dp_overlap = random(0, 2) == 0;
  c.plan.tables.sharding = static_cast<TableSharding>(random(1, 6));
  c.plan.tables.replicated_below = random(0, 2) == 0 ? 0 : 10'000;
  c.job.seq = 1;
  c.job.global_batch = c.plan.dp * c.plan.micro_batch * random(1, 4);
  return c;
}

Seconds step_time(const Case& c) { return Estimator(c.model, c.cluster, c.stack, c.job).step_time(c.plan); }

// Tolerance for rounding: one tick per task.
bool no_slower(Seconds a, Seconds b) { return a.value() <= b.value() * (1.0 + 1e-9) + 1e-9; }

// On one device: every kernel once per micro-batch, accumulation of gradients where GEMMs do not do it, gradient norm
// and optimizer step of the dense weights.
TEST(RecommenderEstimate, one_device_takes_the_sum_of_its_kernels) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.cluster = parallel::test::cluster_of({1});
    c.stack.host.launch_time = c.stack.host.kernel_launch_time = Seconds(0.0);
    c.plan = {};
    c.plan.micro_batch = c.job.global_batch = random(1, 500);
    c.plan.tables.sharding = static_cast<TableSharding>(random(1, 6));
    if (!c.is_valid()) { continue; }
    const auto& accelerator = c.cluster.accelerator;
    Seconds sum = c.stack.host.step_overhead;
    double dense = 0;
    const auto add = [&](const std::vector<workload::Operator>& operators) {
      for (const auto& op : operators) {
        for (const auto* kernel : {&op.forward, &op.backward_input, &op.backward_weight}) {
          sum += cost::kernel_cost(*kernel, accelerator).time;
        }
        dense += op.parameters;
      }
    };
    const auto slice = parallel::slice_of(c.job, c.plan);
    add(workload::embedding_operators(c.model, c.stack, slice));
    for (std::int64_t i = 0; i < c.model.depth(); ++i) {
      add(workload::layer_operators(c.model, c.stack, slice, workload::layer_kind(c.model, i)));
    }
    add(workload::head_operators(c.model, c.stack, slice));
    const auto streamed = [&](double bytes) {
      hardware::Kernel kernel;
      kernel.kind = hardware::KernelKind::stream;
      kernel.bytes = Bytes(bytes);
      return cost::kernel_cost(kernel, accelerator).time;
    };
    const double gradient = c.stack.gradients.element.value();
    const double state = c.stack.optimizer.master_element.value() + c.stack.optimizer.state_element.value();
    if (c.stack.gradients.norm) { sum += streamed(dense * gradient); }
    sum += streamed(dense * (gradient + 2.0 * state + 2.0));
    EXPECT_NEAR(step_time(c).value(), sum.value(), 1e-9 + 1e-6 * sum.value()) << "seed " << seed;
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(RecommenderEstimate, better_hardware_is_never_slower) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SeededRandom random(seed);
    const Case c = any_case(random);
    if (!c.is_valid()) { continue; }
    const Seconds before = step_time(c);
    Case memory = c, peak = c, network = c;
    memory.cluster.accelerator.memory_bandwidth *= 2.0;
    for (auto& [precision, rate] : peak.cluster.accelerator.matrix_peak) { rate *= 2.0; }
    for (auto& dimension : network.cluster.dimensions) { dimension.bandwidth *= 2.0; }
    EXPECT_TRUE(no_slower(step_time(memory), before)) << "seed " << seed;
    EXPECT_TRUE(no_slower(step_time(peak), before)) << "seed " << seed;
    EXPECT_TRUE(no_slower(step_time(network), before)) << "seed " << seed;
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(RecommenderEstimate, the_breakdown_sums_to_the_step_and_the_bound_lies_below) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SeededRandom random(seed);
    const Case c = any_case(random);
    if (!c.is_valid()) { continue; }
    Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const auto estimate = estimator.estimate(c.plan);
    EXPECT_NEAR(estimate.breakdown.total() / estimate.step_time, 1.0, 1e-6) << "seed " << seed;
    EXPECT_LE(estimator.step_time_bound(c.plan), estimate.step_time) << "seed " << seed;
    EXPECT_LE(estimate.memory.tables, estimate.memory.total()) << "seed " << seed;
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

// A tier without limits costs nothing; a slower one more, and the bound of the search still lies below. Memory moves.
// Transfers of replicated tables wait for the exchange of the others, which is on the same stream.
TEST(RecommenderEstimate, offloaded_tables_cost_what_the_tier_takes) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.stack.host.launch_time = c.stack.host.kernel_launch_time = Seconds(0.0);  // transfers are launched, too
    if (!c.is_valid()) { continue; }
    c.cluster.second_tier.memory = Bytes(1e15);
    c.cluster.second_tier.latency = Seconds(0.0);
    const auto offloaded = [&](double bandwidth) {
      Case moved = c;
      moved.cluster.second_tier.bandwidth = BytesPerSecond(bandwidth);
      moved.plan.offload.tables = true;
      Estimator estimator(moved.model, moved.cluster, moved.stack, moved.job);
      const auto estimate = estimator.estimate(moved.plan);
      EXPECT_LE(estimator.step_time_bound(moved.plan), estimate.step_time) << "seed " << seed;
      return estimate;
    };
    const auto kept = Estimator(c.model, c.cluster, c.stack, c.job).estimate(c.plan);
    const auto free = offloaded(1e30), fast = offloaded(1e11), slow = offloaded(1e10);
    const bool waits = c.plan.tables.sharding != TableSharding::replicated && c.plan.tables.replicated_below > 0;
    if (!waits) { EXPECT_NEAR(free.step_time / kept.step_time, 1.0, 1e-6) << "seed " << seed; }
    EXPECT_TRUE(no_slower(kept.step_time, free.step_time)) << "seed " << seed;
    EXPECT_TRUE(no_slower(free.step_time, fast.step_time)) << "seed " << seed;
    EXPECT_LT(fast.step_time, slow.step_time) << "seed " << seed;
    EXPECT_NEAR(slow.breakdown.total() / slow.step_time, 1.0, 1e-6) << "seed " << seed;
    EXPECT_GT(slow.memory.offloaded, Bytes(0)) << "seed " << seed;
    EXPECT_LE(slow.memory.table_state, kept.memory.table_state) << "seed " << seed;
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

// More lookups per sample never take less time; a replica of the tables per node never needs less memory. Tolerance:
// tables on several ranks send either gradients of the accessed rows or whole gradients; when the last table changes to
// whole gradients, the host launches one collective less.
TEST(RecommenderEstimate, more_lookups_take_longer_and_more_copies_more_memory) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SeededRandom random(seed);
    const Case c = any_case(random);
    if (!c.is_valid()) { continue; }
    Case more = c;
    for (auto& table : more.model.recommender.tables) { table.lookups *= 2.0; }
    constexpr double kKindsOfTables = 2.0;  // sharded and replicated
    const auto rounds = kKindsOfTables * static_cast<double>(parallel::micro_batches(c.job, c.plan));
    EXPECT_TRUE(no_slower(step_time(c), step_time(more) + rounds * c.stack.host.launch_time)) << "seed " << seed;
    if (c.plan.dp % 2 != 0 || c.plan.tables.sharding == TableSharding::replicated) { continue; }
    Case copies = c;
    copies.plan.tables.ranks = c.plan.dp / 2;
    Estimator one(c.model, c.cluster, c.stack, c.job), two(c.model, copies.cluster, c.stack, c.job);
    if (c.plan.tables.sharding == TableSharding::row) {
      EXPECT_GE(two.estimate(copies.plan).memory.tables, one.estimate(c.plan).memory.tables) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery::estimate::recommender_test
