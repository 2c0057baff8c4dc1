// Law: the parts add up to what kernels execute beyond HFU, and rules name all of it, for any training plan.
#include "orrery/api/flops_beyond.hpp"

#include <gtest/gtest.h>

#include "orrery/api/plan_simulation.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/simulate/flow.hpp"

namespace orrery::api::flops_beyond_test {
namespace {

TEST(FlopsBeyondLaw, rules_name_all_operations_that_hfu_does_not_count) {
  std::size_t tried = 0, beyond = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    parallel::test::SeededRandom random(seed);
    const parallel::test::Case c = parallel::test::any_case(random);
    const parallel::Program program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
    const generate::Options options{.granularity = generate::Granularity::block};
    if (!generate::JobGraphs::writable(program, options)) { continue; }
    const generate::JobGraphs graphs(program, c.cluster, c.stack, options);
    PlanSimulationOptions how;
    how.graphs = options;
    how.roofline = true;
    const auto classes = class_job(graphs, c.cluster, how);
    ASSERT_TRUE(classes) << seed;
    const auto folded = simulate::folded(c.cluster, *classes, simulate::Folding::automatic);
    const auto simulation = simulate::simulate_flows(folded.job);
    ASSERT_TRUE(simulation) << seed;
    const double executed = simulation->roofline->operations();
    estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const double hfu = estimator.estimate(c.plan).hardware_flops.value();
    double sum = hfu;
    ++tried;
    for (const results::FlopsPart& part : flops_beyond_hfu(program, {c.model, c.cluster, c.stack, {}}, executed, hfu)) {
      const bool has_frozen_tower = c.model.tower.images > 0 && c.job.adapter.rank > 0;
      if (part.name == "other") {
        EXPECT_TRUE(has_frozen_tower && part.flops < 1e-3 * executed)
            << "seed " << seed << ": " << part.flops / executed << "\n"
            << parallel::test::to_text(c);
      }
      sum += part.flops;
      ++beyond;
    }
    EXPECT_NEAR(sum, executed, 1e-3 * executed) << seed;
  }
  EXPECT_GT(tried, 40U);
  EXPECT_GT(beyond, 40U);
}

}  // namespace
}  // namespace orrery::api::flops_beyond_test
