// The bound that a search prunes by never exceeds the step time.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::estimate::bound_test {
namespace {

using parallel::Plan;
using parallel::Recompute;
using parallel::test::SeededRandom;

TEST(Bound, of_random_small_jobs_is_never_above_the_step) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SeededRandom random(seed);
    auto c = parallel::test::any_case(random);
    c.stack.overlap.dispatch = seed % 2 == 1;
    Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const Seconds bound = estimator.step_time_bound(c.plan);
    ASSERT_GT(bound, Seconds());
    ASSERT_LE(bound, estimator.step_time(c.plan)) << "seed " << seed;
  }
}

// A random plan of `devices` devices; most are invalid.
Plan any_large_plan(SeededRandom& random, std::int64_t devices) {
  const auto power = [&](std::int64_t most) { return std::int64_t{1} << random(0, most); };
  Plan plan;
  plan.tp = power(5);
  plan.pp = parallel::test::any_of(random, {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 32});
  plan.dp = devices / (plan.tp * plan.pp);
  plan.vpp = random(1, 5);
  plan.schedule = plan.vpp > 1 ? parallel::ScheduleKind::interleaved : parallel::ScheduleKind::one_f_one_b;
  plan.micro_batch = power(4);
  plan.sequence_parallel = random(0, 2) == 1;
  plan.zero = static_cast<int>(random(0, 4));
  plan.recompute = static_cast<Recompute>(random(0, 3));
  plan.recompute_layers = plan.recompute == Recompute::none ? 0 : plan.pp % 3;
  plan.dp_overlap = random(0, 2) == 1;
  return plan;
}

struct Real {
  std::string model, cluster, stack;
  std::int64_t devices, batch, seq;
};

TEST(Bound, of_real_models_on_real_clusters_is_never_above_the_step) {
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  const std::vector<Real> jobs = {{"gpt3-175b", "dgx-a100", "megatron-2021", 1024, 1536, 2048},
                                  {"llama-3.1-405b", "dgx-h100", "megatron-core", 2048, 2048, 8192},
                                  {"llama-3-8b", "dgx-h200", "fsdp", 64, 512, 4096},
                                  {"qwen2-0.5b", "dgx-a100-40gb", "ideal", 32, 256, 2048},
                                  {"gpt-neox-20b", "dgx-a100-40gb", "megatron-deepspeed", 96, 1536, 2048},
                                  {"bloom-176b", "dgx-b200", "megatron-core", 384, 2304, 2048}};
  int checked = 0;
  for (const auto& job : jobs) {
    const auto model = workload::load_model(ORRERY_DATA_DIR, job.model);
    const auto cluster = catalogue.cluster(job.cluster, job.devices);
    const auto stack = catalogue.stack(job.stack);
    ASSERT_TRUE(model && cluster && stack) << job.model;
    const parallel::Job work{job.batch, job.seq, hardware::Precision::bf16, parallel::Task::pretrain};
    Estimator estimator(*model, *cluster, *stack, work);
    SeededRandom random(7);
    for (int i = 0; i < 5000; ++i) {
      const Plan plan = any_large_plan(random, job.devices);
      if (plan.dp < 1 || !parallel::is_valid(*model, work, plan, job.devices)) { continue; }
      ++checked;
      const Seconds bound = estimator.step_time_bound(plan), time = estimator.step_time(plan);
      ASSERT_LE(bound, time) << job.model << " tp " << plan.tp << " pp " << plan.pp << " vpp " << plan.vpp;
    }
  }
  EXPECT_GT(checked, 2000);
}

// 10^9 micro-batches of some milliseconds: weeks of work, with ticks a thousand times as long. If durations were
// rounded to the nearest tick instead of up, the step could be shorter than its work.
TEST(Bound, holds_where_ticks_are_coarse) {
  SeededRandom random(3);
  auto c = parallel::test::any_case(random);
  c.plan = {};
  c.plan.pp = 2;
  c.model = parallel::test::gpt(64, 1024, 8, 1024);
  c.job.seq = 512;
  c.cluster = parallel::test::cluster_of({2});
  for (const std::int64_t batch : {1'000'000'000, 999'999'999, 423'456'789}) {
    c.job.global_batch = batch;
    Estimator estimator(c.model, c.cluster, c.stack, c.job);
    EXPECT_GT(estimator.step_time(c.plan).value(), 2e5);
    EXPECT_LE(estimator.step_time_bound(c.plan), estimator.step_time(c.plan));
  }
}

}  // namespace
}  // namespace orrery::estimate::bound_test
