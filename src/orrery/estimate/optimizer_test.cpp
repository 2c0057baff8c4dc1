// Laws of the optimizers with the shipped catalogue.
#include <vector>

#include <gtest/gtest.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::estimate::optimizer_test {
namespace {

using hardware::OptimizerKind;

// Llama 3.1 8B on 16 H100 in two nodes.
results::Estimate estimate(OptimizerKind kind, int zero, std::int64_t dp = 16) {
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  const auto model = workload::load_model(ORRERY_DATA_DIR, "llama-3.1-8b").value();
  const auto cluster = catalogue.cluster("dgx-h100", 16).value();
  hardware::Stack stack = catalogue.stack("ideal").value();
  stack.optimizer.kind = kind;
  parallel::Job job;
  job.global_batch = 32;
  job.seq = 4096;
  parallel::Plan plan;
  plan.dp = dp;
  plan.tp = 16 / dp;
  plan.zero = zero;
  plan.recompute = parallel::Recompute::full;
  return Estimator(model, cluster, stack, job).estimate(plan);
}

TEST(Optimizer, less_state_takes_less_memory_and_less_traffic) {
  for (int zero = 0; zero <= 3; ++zero) {
    results::Estimate before = estimate(OptimizerKind::adam, zero);
    for (const auto kind : {OptimizerKind::sgd, OptimizerKind::adam8bit}) {
      const auto now = estimate(kind, zero);
      EXPECT_LT(now.memory.optimizer, before.memory.optimizer) << hardware::name_of(kind) << zero;
      EXPECT_LT(now.breakdown.optimizer, before.breakdown.optimizer) << hardware::name_of(kind) << zero;
      before = now;
    }
  }
}

// Muon keeps less than Adam and more than SGD, and its products make it slower than both. They are no part of the
// model's FLOPs.
TEST(Optimizer, muon_trades_time_for_memory) {
  for (int zero = 0; zero <= 3; ++zero) {
    const auto adam = estimate(OptimizerKind::adam, zero), sgd = estimate(OptimizerKind::sgd, zero);
    const auto muon = estimate(OptimizerKind::muon, zero);
    EXPECT_LT(muon.memory.optimizer, adam.memory.optimizer) << zero;
    EXPECT_GT(muon.memory.optimizer, sgd.memory.optimizer) << zero;
    EXPECT_GT(muon.step_time, adam.step_time) << zero;
    EXPECT_EQ(muon.model_flops, adam.model_flops) << zero;
    EXPECT_EQ(muon.memory.weights, adam.memory.weights) << zero;
  }
}

// The work of a replica under ZeRO-1 falls with the number of replicas.
TEST(Optimizer, more_replicas_share_the_work_of_muon) {
  EXPECT_LT(estimate(OptimizerKind::muon, 1, 16).breakdown.optimizer,
            estimate(OptimizerKind::muon, 0, 16).breakdown.optimizer / 8.0);
}

TEST(Optimizer, a_request_changes_the_stack_s) {
  Request request;
  hardware::Stack stack;
  EXPECT_EQ(stack_of(request, stack).optimizer.kind, OptimizerKind::adam);
  request.optimizer = OptimizerKind::muon;
  EXPECT_EQ(stack_of(request, stack).optimizer.kind, OptimizerKind::muon);
  EXPECT_TRUE(problems(request).empty());
  request.task = parallel::Task::inference;
  ASSERT_EQ(problems(request).size(), 1u);
  EXPECT_EQ(problems(request).front().message, "training only: no effect with --task inference");
}

}  // namespace
}  // namespace orrery::estimate::optimizer_test
