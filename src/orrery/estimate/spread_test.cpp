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
  for (auto& dimension : cluster.dimensions) { dimension.link.basis = hardware::Basis::measured; }
  return cluster;
}

TEST(Spread, kinds_of_jobs_go_from_the_narrowest_to_any) {
  parallel::Job job;
  workload::Model model;
  const auto measured = hardware::Basis::measured;
  EXPECT_THAT(kinds_of(job, model, cluster(8, measured)),
              ElementsAre("dense measured", "dense", "training measured", "training", "any"));
  EXPECT_THAT(kinds_of(job, model, cluster(16, hardware::Basis::prior)),
              ElementsAre("dense prior", "dense", "training prior", "training", "any"));
  model.experts.count = 8;
  EXPECT_EQ(kinds_of(job, model, cluster(16, measured)).front(), "experts measured");
  job.adapter.rank = 16;
  EXPECT_EQ(kinds_of(job, model, cluster(16, measured)).front(), "adapters measured");
  job.task = parallel::Task::inference;
  EXPECT_THAT(kinds_of(job, model, cluster(16, measured)), ElementsAre("inference measured", "inference", "any"));
  EXPECT_THAT(kinds_of("kernels", hardware::Basis::generation), ElementsAre("kernels generation", "kernels", "any"));
}

// Of a collective, only the links count that its group uses.
TEST(Spread, a_collective_belongs_to_a_kind_by_the_links_of_its_group) {
  hardware::Cluster two_nodes = cluster(16, hardware::Basis::prior);
  ASSERT_EQ(two_nodes.dimensions.size(), 2U);
  two_nodes.dimensions[0].link.basis = hardware::Basis::measured;
  two_nodes.dimensions[1].link.basis = hardware::Basis::generation;
  EXPECT_THAT(kinds_of_collective(network::Group{.extents = {{0, 8}}}, two_nodes),
              ElementsAre("collectives-one-domain measured", "collectives-one-domain", "collectives measured",
                          "collectives", "any"));
  EXPECT_EQ(kinds_of_collective(network::Group{.extents = {{0, 8}, {1, 2}}}, two_nodes).front(),
            "collectives-many-domains generation");
}

TEST(Spread, a_range_is_the_time_times_the_quantiles_of_the_first_kind_that_is_known) {
  const Spreads spreads{{{"any", 0.5, 2.0, 100, 20}, {"experts", 0.8, 1.5, 30, 10, 0.1, 0.1, 0.8}}, "somewhere"};
  const auto range = uncertainty_of(spreads, {"experts prior", "experts", "any"}, Seconds(10.0));
  ASSERT_TRUE(range);
  EXPECT_DOUBLE_EQ(range->p10.value(), 8.0);
  EXPECT_DOUBLE_EQ(range->p90.value(), 15.0);
  EXPECT_EQ(range->kind, "experts");
  EXPECT_THAT(range->basis, HasSubstr("30 published rows of 10 sources"));
  EXPECT_THAT(range->basis, HasSubstr("80 % of its rows inside"));
  EXPECT_DOUBLE_EQ(uncertainty_of(spreads, {"inference", "any"}, Seconds(1.0))->p90.value(), 2.0);
  EXPECT_FALSE(uncertainty_of(spreads, {"inference"}, Seconds(1.0)));
  EXPECT_FALSE(uncertainty_of({}, {"any"}, Seconds(1.0)));
}

TEST(Spread, the_table_that_ships_has_every_kind_of_job_as_a_range_around_it) {
  const auto spreads = load_spreads(ORRERY_SOURCE_DATA_DIR);
  ASSERT_TRUE(spreads) << spreads.error().text();
  ASSERT_FALSE(spreads->kinds.empty());
  for (const char* kind : {"dense", "experts", "adapters", "recommenders", "training", "inference", "kernels",
                           "collectives-one-domain", "collectives-many-domains", "collectives", "parts", "any"}) {
    EXPECT_TRUE(uncertainty_of(*spreads, {kind}, Seconds(1.0))) << kind;
  }
  for (const auto& spread : spreads->kinds) {
    EXPECT_LT(spread.p10, spread.p90) << spread.kind;
    EXPECT_GE(spread.rows, spread.sources) << spread.kind;
    EXPECT_GT(spread.coverage, 0.7) << spread.kind;
  }
  EXPECT_TRUE(load_spreads("/no/such/folder").value().kinds.empty());
}

}  // namespace
}  // namespace orrery::estimate::spread_test
