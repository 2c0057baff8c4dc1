// What plans leave free of a device's memory.
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"

namespace orrery::api::headroom_test {
namespace {

TEST(Headroom, best_plans_leave_it_free_and_are_not_faster_than_without) {
  PlanRequest request;
  request.job.model = "llama-3.1-8b";
  request.job.cluster = "dgx-h100";
  request.job.devices = 16;
  request.job.global_batch = 64;
  request.job.seq = 8192;
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  const auto whole = orrery.plan(request).value();
  for (const double headroom : {0.05, 0.3}) {
    request.headroom = headroom;
    const auto answer = orrery.plan(request).value();
    ASSERT_FALSE(answer.best.empty());
    const Bytes usable = whole.best.front().memory.capacity;
    for (const auto& plan : answer.best) { EXPECT_LE(plan.memory.total(), usable * (1.0 - headroom) * (1.0 + 1e-12)); }
    EXPECT_GE(answer.best.front().step_time, whole.best.front().step_time);
  }
}

}  // namespace
}  // namespace orrery::api::headroom_test
