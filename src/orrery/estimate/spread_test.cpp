#include "orrery/estimate/spread.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::estimate::spread_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

hardware::Cluster cluster(std::int64_t devices, hardware::Basis basis) {
  hardware::Cluster cluster;
  cluster.dimensions.resize(2);
  cluster.dimensions[0].size = 8;
  cluster.devices = devices;
  cluster.accelerator.basis = basis;
  return cluster;
}

TEST(Spread, kinds_of_jobs_go_from_the_narrowest_to_any) {
  parallel::Job job;
  hardware::Stack stack;
  stack.name = "fsdp";
  workload::Model model;
  const auto measured = hardware::Basis::measured;
  EXPECT_THAT(kinds_of(job, model, cluster(8, measured), stack),
              ElementsAre("dense-one-domain fsdp", "dense-one-domain", "any"));
  EXPECT_THAT(kinds_of(job, model, cluster(16, measured), stack),
              ElementsAre("dense-many-domains fsdp", "dense-many-domains", "any"));
  EXPECT_THAT(kinds_of(job, model, cluster(8, hardware::Basis::prior), stack),
              ElementsAre("unmeasured-accelerator", "dense-one-domain fsdp", "dense-one-domain", "any"));
  model.experts.count = 8;
  EXPECT_THAT(kinds_of(job, model, cluster(16, measured), stack), ElementsAre("experts fsdp", "experts", "any"));
  job.adapter.rank = 16;
  EXPECT_THAT(kinds_of(job, model, cluster(16, measured), stack), ElementsAre("adapters fsdp", "adapters", "any"));
  job.task = parallel::Task::inference;
  EXPECT_THAT(kinds_of(job, model, cluster(16, measured), stack), ElementsAre("inference fsdp", "inference", "any"));
}

TEST(Spread, a_range_is_the_time_times_the_quantiles_of_the_first_kind_that_is_known) {
  const Spreads spreads{{{"any", 0.5, 2.0, 100, 20}, {"experts", 0.8, 1.5, 30, 10}}, "somewhere"};
  const auto range = uncertainty_of(spreads, {"unmeasured-accelerator", "experts", "any"}, Seconds(10.0));
  ASSERT_TRUE(range);
  EXPECT_DOUBLE_EQ(range->p10.value(), 8.0);
  EXPECT_DOUBLE_EQ(range->p90.value(), 15.0);
  EXPECT_EQ(range->kind, "experts");
  EXPECT_THAT(range->basis, HasSubstr("30 published rows of 10 configurations"));
  EXPECT_DOUBLE_EQ(uncertainty_of(spreads, {"inference", "any"}, Seconds(1.0))->p90.value(), 2.0);
  EXPECT_FALSE(uncertainty_of(spreads, {"inference"}, Seconds(1.0)));
  EXPECT_FALSE(uncertainty_of({}, {"any"}, Seconds(1.0)));
}

TEST(Spread, the_table_that_ships_has_every_kind_of_job_as_a_range_around_it) {
  const auto spreads = load_spreads(ORRERY_SOURCE_DATA_DIR);
  ASSERT_TRUE(spreads) << spreads.error().text();
  ASSERT_FALSE(spreads->kinds.empty());
  EXPECT_EQ(spreads->kinds.back().kind, "any");
  for (const auto& spread : spreads->kinds) {
    EXPECT_LT(spread.p10, spread.p90) << spread.kind;
    EXPECT_GE(spread.rows, spread.groups) << spread.kind;
  }
  EXPECT_TRUE(load_spreads("/no/such/folder").value().kinds.empty());
}

}  // namespace
}  // namespace orrery::estimate::spread_test
