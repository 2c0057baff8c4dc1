// Random points of a space, compared with the search over it and the estimates of their plans.
#include <algorithm>

#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"
#include "orrery/core/test_effort.hpp"

namespace orrery::api::sample_test {
namespace {

PlanRequest small_search() {
  PlanRequest request;
  request.job.model = "llama-2-7b";
  request.job.cluster = "dgx-a100";
  request.job.devices = 16;
  request.job.global_batch = 64;
  request.job.seq = 4096;
  request.threads = 1;
  return request;
}

TEST(ApiSample, all_points_of_a_space_match_an_exhaustive_search) {
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  auto request = small_search();
  if (orrery::test::kSanitizers) { request.job.devices = 8; }
  const auto sample = orrery.sample(request, 1'000'000, 0);
  request.exhaustive = true;
  request.top = 1;
  const auto search = orrery.plan(request);
  ASSERT_TRUE(sample && search);
  EXPECT_EQ(sample->points, search->space.points);
  EXPECT_EQ(static_cast<std::int64_t>(sample->sampled.size()), search->space.points);
  const auto is = [](const char* verdict) {
    return [verdict](const results::SampledPoint& point) { return point.verdict == verdict; };
  };
  const auto& sampled = sample->sampled;
  EXPECT_EQ(std::count_if(sampled.begin(), sampled.end(), is("priced")), search->space.feasible);
  EXPECT_EQ(std::count_if(sampled.begin(), sampled.end(), is("memory")), search->space.rejected_memory);
  Seconds lowest(1e9);
  for (const auto& point : sampled) {
    if (point.verdict == "priced") { lowest = min(lowest, point.step_time); }
  }
  EXPECT_EQ(lowest, search->best.front().step_time);
}

TEST(ApiSample, flags_give_what_differs_from_an_empty_request) {
  auto request = small_search().job;
  request.cp_method = workload::ContextMethod::ulysses;
  request.dp_overlap = false;
  request.placement = parallel::Placement{.tp = 0, .dp = 1};
  const std::vector<std::string> expected = {
      "--model", "llama-2-7b", "--cluster",   "dgx-a100", "--devices",       "16",          "--global-batch", "64",
      "--seq",   "4096",       "--cp-method", "ulysses",  "--no-dp-overlap", "--placement", "tp=0 dp=1"};
  EXPECT_EQ(flags_of(request), expected);
}

}  // namespace
}  // namespace orrery::api::sample_test
