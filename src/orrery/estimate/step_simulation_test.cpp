// The closed form of a step against an item-by-item simulation of the program: no formula may exist only in the closed
// form.
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/estimate/program_simulation.hpp"
#include "orrery/estimate/step.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::estimate::step_simulation_test {
namespace {

using parallel::test::any_case;
using parallel::test::Case;
using parallel::test::SeededRandom;

// The solver rounds durations up to picoseconds: at most one tick for each task and transfer of a path. No path has
// more of them than one stage's tasks plus one pass through all stages in each direction.
Seconds rounding(const Case& c) {
  const auto m = static_cast<double>(parallel::micro_batches(c.job, c.plan));
  const auto chunks = static_cast<double>(c.plan.vpp), stages = static_cast<double>(c.plan.pp);
  return Seconds(1e-12 * (4.0 * m * chunks + 4.0 * stages * chunks));
}

struct Compared {
  Step step;
  SimulatedStep simulated;
  Seconds tolerance;

  [[nodiscard]] bool near(Seconds a, Seconds b) const {
    return std::abs((a - b).value()) <= tolerance.value() + 1e-9 * b.value();
  }
};

Compared compare(const Case& c) {
  using network::NodeEgress;
  const network::Fabric fabric(
      c.cluster, c.stack.transfers.ports == hardware::NodePorts::one ? NodeEgress::one_port : NodeEgress::all_ports);
  const auto program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
  parallel::PipelineSolver solver;
  return {StepSolver(fabric, c.stack).solve(program), simulate(program, fabric, c.stack), rounding(c)};
}

RC_GTEST_PROP(StepSimulation, a_step_takes_as_long_as_its_program_simulated_item_by_item, ()) {
  const Compared both =
      compare(any_case([](auto low, auto high) { return *rc::gen::inRange<std::int64_t>(low, high); }));
  RC_ASSERT(both.near(both.step.time, both.simulated.time));
}

// The same for 2,000 plans, comparing parts of the step too. The tolerance is far below the effect of any rule: the
// median step here is 20 ms, of about a hundred tasks.
TEST(StepSimulation, two_thousand_random_plans_agree_in_time_pipeline_end_and_synchronisation) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SeededRandom random(seed);
    const Compared both = compare(any_case(random));
    const auto critical = static_cast<std::size_t>(both.step.critical_stage);
    ASSERT_TRUE(both.near(both.step.time, both.simulated.time)) << "seed " << seed;
    ASSERT_TRUE(both.near(both.step.pipeline_end, both.simulated.stage_end[critical])) << "seed " << seed;
    for (const Seconds synchronised : both.simulated.synchronised) {
      ASSERT_TRUE(synchronised <= both.step.ready + both.tolerance) << "seed " << seed;
    }
  }
}

// Slow gathers, during the first forwards, of weights that the optimizer shards: checks the earliest ends of first
// forwards on every schedule.
TEST(StepSimulation, slow_gathers_under_the_first_forward_agree) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    if (c.plan.dp == 1) { continue; }
    c.plan.zero = 1 + static_cast<int>(random(0, 2));
    c.plan.offload = {};
    c.plan.dp_overlap = c.stack.overlap.parameter_gather = true;
    for (auto& dimension : c.cluster.dimensions) { dimension.bandwidth /= 100.0; }
    const Compared both = compare(c);
    ASSERT_TRUE(both.near(both.step.time, both.simulated.time)) << "seed " << seed;
  }
}

// Frozen expert weights that are sharded are gathered in every pass and have no gradients to reduce, so gathers alone
// slow the compute.
TEST(StepSimulation, gathers_of_frozen_weights_that_slow_work_agree) {
  int slowed = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SeededRandom random(seed);
    Case c = parallel::test::any_case_of(random, true);
    c.job.task = parallel::Task::finetune;
    c.job.adapter = {8, workload::Adapter::Targets::attention};
    c.plan.zero = 3;
    c.plan.shard = 0;
    c.stack.overlap.interference = 0.2;
    const Compared both = compare(c);
    ASSERT_TRUE(both.near(both.step.time, both.simulated.time)) << "seed " << seed;
    c.stack.overlap.interference = 0.0;
    slowed += compare(c).step.time < both.step.time ? 1 : 0;
  }
  EXPECT_GT(slowed, 50);
}

// The first and the last stage reduce the tied embedding table together; the one that finishes its reductions later
// would delay it.
TEST(StepSimulation, tied_tables_without_overlap_agree) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    if (c.plan.pp == 1) { continue; }
    c.model.tied_embeddings = true;
    c.plan.zero = static_cast<int>(random(0, 2));
    c.plan.shard = 0;
    c.plan.dp_overlap = false;
    const Compared both = compare(c);
    ASSERT_TRUE(both.near(both.step.time, both.simulated.time)) << "seed " << seed;
  }
}

struct Published {
  std::string model, cluster, stack;
  std::int64_t batch, seq;
  parallel::Plan plan;
};

// Published jobs with steps of seconds, so that rounding is far below 1e-9.
TEST(StepSimulation, real_jobs_agree_to_a_part_in_a_thousand_million) {
  using parallel::Recompute;
  using parallel::ScheduleKind;
  // tp, pp, dp, vpp, sequence parallel, ZeRO stage, recompute, schedule
  const auto plan = [](std::int64_t tp, std::int64_t pp, std::int64_t dp, bool split, int zero, Recompute recompute) {
    parallel::Plan made;
    made.tp = tp;
    made.pp = pp;
    made.dp = dp;
    made.sequence_parallel = split;
    made.zero = zero;
    made.recompute = recompute;
    return made;
  };
  const auto in_turns = [](parallel::Plan made, std::int64_t vpp) {
    made.vpp = vpp;
    made.schedule = ScheduleKind::interleaved;
    return made;
  };
  auto alone = plan(8, 8, 24, false, 0, Recompute::full);
  alone.dp_overlap = false;
  auto pairs = plan(1, 1, 64, false, 3, Recompute::full);
  pairs.micro_batch = 2;
  const std::vector<Published> jobs = {
      {"gpt3-175b", "dgx-a100", "megatron-2021", 1536, 2048, alone},
      {"gpt3-175b", "dgx-a100", "megatron-core", 512, 2048, in_turns(plan(8, 8, 8, true, 1, Recompute::selective), 6)},
      {"llama-3.1-405b", "dgx-h100", "megatron-core", 2048, 8192, plan(8, 16, 64, true, 1, Recompute::none)},
      {"llama-3-8b", "dgx-h200", "fsdp", 512, 4096, pairs},
      {"qwen2-0.5b", "dgx-a100-40gb", "ideal", 264, 2048, in_turns(plan(2, 3, 4, true, 2, Recompute::none), 4)}};
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  for (const auto& job : jobs) {
    const auto model = workload::load_model(ORRERY_DATA_DIR, job.model);
    const auto cluster = catalogue.cluster(job.cluster, job.plan.devices());
    const auto stack = catalogue.stack(job.stack);
    ASSERT_TRUE(model && cluster && stack) << job.model;
    const parallel::Job work{job.batch, job.seq, hardware::Precision::bf16, parallel::Task::pretrain};
    ASSERT_TRUE(parallel::is_valid(*model, work, job.plan, cluster->devices)) << job.model;
    const Compared both = compare({*model, work, job.plan, *cluster, *stack});
    EXPECT_NEAR(both.step.time / both.simulated.time, 1.0, 1e-9) << job.model;
  }
}

}  // namespace
}  // namespace orrery::estimate::step_simulation_test
