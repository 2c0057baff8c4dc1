// A search over recommenders' plans: pruned results equal exhaustive ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"

namespace orrery::api::recommender_plan_test {
namespace {

const Orrery& orrery() {
  static const Orrery one(ORRERY_SOURCE_DATA_DIR);
  return one;
}

PlanRequest search(const std::string& model, std::int64_t devices, std::int64_t batch) {
  PlanRequest request;
  request.job.model = model;
  request.job.cluster = "dgx-h100";
  request.job.devices = devices;
  request.job.global_batch = batch;
  request.threads = 1;
  request.top = 20;
  request.variants = true;
  return request;
}

results::PlanSearch found(const PlanRequest& request) {
  auto answer = orrery().plan(request);
  EXPECT_TRUE(answer) << answer.error().text();
  return answer.value_or(results::PlanSearch{});
}

TEST(RecommenderPlan, pruned_and_exhaustive_searches_find_the_same_plans) {
  for (const std::int64_t devices : {1, 4, 8, 16}) {
    PlanRequest request = search("dlrm-dcnv2", devices, 16384);
    const auto pruned = found(request);
    request.exhaustive = true;
    const auto all = found(request);
    EXPECT_EQ(pruned.space.points, all.space.points);
    ASSERT_EQ(pruned.best.size(), all.best.size()) << devices;
    for (std::size_t i = 0; i < all.best.size(); ++i) {
      EXPECT_EQ(pruned.best[i].step_time, all.best[i].step_time) << devices << " " << i;
      EXPECT_EQ(pruned.best[i].plan.text("table_sharding"), all.best[i].plan.text("table_sharding"))
          << devices << " " << i;
    }
  }
}

TEST(RecommenderPlan, tables_of_209_gigabytes_fit_no_gpu_whole) {
  EXPECT_TRUE(found(search("dlrm-dcnv2", 1, 4096)).best.empty());
  const auto eight = found(search("dlrm-dcnv2", 8, 55296));
  ASSERT_FALSE(eight.best.empty());
  for (const auto& one : eight.best) { EXPECT_NE(one.plan.text("table_sharding"), "replicated"); }
}

}  // namespace
}  // namespace orrery::api::recommender_plan_test
