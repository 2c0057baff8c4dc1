// Law: the peak of every rank over time is the memory of its stage in the closed form, for any plan.
#include "orrery/api/memory_over_time.hpp"

#include <gtest/gtest.h>

#include "orrery/api/plan_simulation.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/simulate/flow.hpp"

namespace orrery::api::memory_over_time_test {
namespace {

TEST(MemoryOverTimeLaw, peak_of_every_rank_equals_the_memory_of_its_stage_in_the_estimate) {
  std::size_t tried = 0, rising = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    parallel::test::SeededRandom random(seed);
    const parallel::test::Case c = parallel::test::any_case(random);
    parallel::Lowerer lowerer(c.model, c.cluster, c.stack);
    const parallel::Program program = lowerer.lower(c.job, c.plan).program;
    const generate::Options options{.granularity = generate::Granularity::block};
    if (!generate::JobGraphs::writable(program, options)) { continue; }
    const generate::JobGraphs graphs(program, c.cluster, c.stack, options);
    PlanSimulationOptions how;
    how.graphs = options;
    how.memory = true;
    const auto classes = class_job(graphs, c.cluster, how);
    ASSERT_TRUE(classes) << seed;
    const auto folded = simulate::folded(c.cluster, *classes, simulate::Folding::automatic);
    const auto simulation = simulate::simulate_flows(folded.job);
    ASSERT_TRUE(simulation) << seed;
    const auto memory = memory_over_time(
        {program, lowerer, graphs}, [](std::int64_t) { return Bytes(1); }, folded.job.simulated, *simulation);
    ASSERT_EQ(memory.ranks.size(), static_cast<std::uint64_t>(c.plan.devices()));
    ++tried;
    for (const auto& run : memory.ranks.runs()) {
      const auto stage = run.first / static_cast<std::uint64_t>(graphs.stage_ranks());
      const double expected = program.memory.at(stage).total().value();
      EXPECT_NEAR(run.value.peak, expected, 1e-9 * expected) << "seed " << seed << ", stage " << stage;
      EXPECT_GE(run.value.mean, run.value.held);
      EXPECT_LE(run.value.mean, run.value.peak);
      EXPECT_NEAR(run.value.points.back().bytes, run.value.held, 1e-9 * expected);
      if (run.value.peak > run.value.held) { ++rising; }
    }
  }
  EXPECT_GT(tried, 30U);
  EXPECT_GT(rising, 30U);
}

}  // namespace
}  // namespace orrery::api::memory_over_time_test
