// Searches over several numbers of devices: what is merged is what single searches find.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"

namespace orrery::api::plan_counts_test {
namespace {

using results::Objective;
using testing::HasSubstr;

const Orrery& orrery() {
  static const Orrery one(ORRERY_SOURCE_DATA_DIR);
  return one;
}

PlanRequest small_search() {
  PlanRequest request;
  request.job.model = "llama-2-7b";
  request.job.cluster = "dgx-a100";
  request.job.global_batch = 64;
  request.job.seq = 4096;
  request.threads = 1;
  return request;
}

results::PlanSearch found(const PlanRequest& request) {
  auto answer = orrery().plan(request);
  EXPECT_TRUE(answer) << answer.error().text();
  return answer.value_or(results::PlanSearch{});
}

// Every plan of single searches, sorted by what is asked for.
std::vector<results::Estimate> all_of(PlanRequest request, const std::vector<std::int64_t>& counts) {
  std::vector<results::Estimate> all;
  request.device_counts.clear();
  request.objective = Objective::step_time;
  request.within.reset();
  request.top = 1000;
  for (const std::int64_t count : counts) {
    request.job.devices = count;
    for (const auto& one : found(request).best) { all.push_back(one); }
  }
  return all;
}

class Objectives : public testing::TestWithParam<Objective> {};

TEST_P(Objectives, the_merged_best_are_the_best_of_all_single_searches) {
  const std::vector<std::int64_t> counts = {8, 16, 32};
  const auto figure = [](const results::Estimate& one) {
    switch (GetParam()) {
      case Objective::step_time: return one.step_time.value();
      case Objective::cost: return one.cost->amount;
      case Objective::energy: return one.energy->amount;
      case Objective::devices: return static_cast<double>(one.devices) * 1e6 + one.step_time.value();
      case Objective::days:
      case Objective::usd:
      case Objective::kwh:
      case Objective::co2: break;  // of campaigns: campaign_test.cpp
    }
    return 0.0;
  };
  auto request = small_search();
  request.device_counts = counts;
  request.objective = GetParam();
  request.top = 12;
  const auto merged = found(request);
  std::vector<double> expected, actual;
  for (const auto& one : all_of(request, counts)) { expected.push_back(figure(one)); }
  for (const auto& one : merged.best) { actual.push_back(figure(one)); }
  std::sort(expected.begin(), expected.end());
  expected.resize(12);
  EXPECT_EQ(actual, expected);
  ASSERT_EQ(merged.by_devices.size(), 3U);
  EXPECT_EQ(merged.by_devices[2].devices, 32);
}

INSTANTIATE_TEST_SUITE_P(All, Objectives,
                         testing::Values(Objective::step_time, Objective::cost, Objective::energy, Objective::devices));

TEST(PlanCounts, counts_of_points_are_summed) {
  auto request = small_search();
  std::int64_t points = 0;
  for (const std::int64_t devices : {8, 16}) {
    request.job.devices = devices;
    points += found(request).space.points;
  }
  request.device_counts = {16, 8, 16};
  const auto merged = found(request);
  EXPECT_EQ(merged.space.points, points);
  EXPECT_EQ(merged.space.evaluated + merged.space.pruned, points);
  ASSERT_EQ(merged.by_devices.size(), 2U);
  EXPECT_EQ(merged.by_devices.front().devices, 8);
}

// The fewest devices whose fastest step is within the limit.
TEST(PlanCounts, within_a_limit_the_fewest_devices_are_those_that_keep_it) {
  auto request = small_search();
  request.device_counts = {8, 16, 32};
  const auto rows = found(request).by_devices;
  request.objective = Objective::devices;
  EXPECT_EQ(found(request).best.front().devices, 8);
  request.within = rows[1].step_time;  // just what 16 devices reach
  const auto limited = found(request);
  ASSERT_FALSE(limited.best.empty());
  EXPECT_EQ(limited.best.front().devices, 16);
  for (const auto& one : limited.best) { EXPECT_LE(one.step_time, *request.within); }
  EXPECT_FALSE(limited.by_devices[0].within);
  EXPECT_TRUE(limited.by_devices[1].within);
  request.within = 0.5 * rows[2].step_time;
  const auto none = found(request);
  EXPECT_TRUE(none.best.empty());
  EXPECT_THAT(none.nothing_fits, HasSubstr("on 32 devices"));
}

// No plan of any number of devices beats one of the front in time, memory and devices, and all that none beats are in.
TEST(PlanCounts, the_front_is_of_time_memory_and_devices) {
  auto request = small_search();
  request.device_counts = {8, 16};
  request.front = true;
  const auto front = found(request).front;
  request.variants = true;
  const auto all = all_of(request, {8, 16});
  const auto beats = [](const results::Estimate& a, const results::Estimate& b) {
    const bool no_worse = a.devices <= b.devices && a.step_time <= b.step_time && a.memory.total() <= b.memory.total();
    const bool better = a.devices < b.devices || a.step_time < b.step_time || a.memory.total() < b.memory.total();
    return no_worse && better;
  };
  for (const auto& one : front) {
    EXPECT_TRUE(std::none_of(all.begin(), all.end(), [&](const auto& other) { return beats(other, one); }));
  }
  for (const auto& one : all) {
    const bool is_beaten = std::any_of(all.begin(), all.end(), [&](const auto& other) { return beats(other, one); });
    const bool is_there = std::any_of(front.begin(), front.end(), [&](const auto& other) {
      return other.devices == one.devices && other.step_time == one.step_time &&
             other.memory.total() == one.memory.total();
    });
    EXPECT_NE(is_beaten, is_there);
  }
  EXPECT_GT(front.size(), 2U);
}

// Three replicas cannot be had of 16 devices, but of 24.
TEST(PlanCounts, a_number_that_no_plan_suits_is_a_row_unless_none_does) {
  auto request = small_search();
  request.job.dp = 3;
  request.job.global_batch = 48;
  request.device_counts = {16, 24};
  const auto merged = found(request);
  ASSERT_EQ(merged.by_devices.size(), 2U);
  EXPECT_FALSE(merged.by_devices[0].feasible);
  EXPECT_TRUE(merged.by_devices[1].feasible);
  EXPECT_EQ(merged.best.front().devices, 24);
  request.device_counts = {8, 16};
  const auto wrong = orrery().plan(request);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("--dp: "));
}

TEST(PlanCounts, a_number_that_the_cluster_cannot_have_has_a_row_and_is_a_mistake_if_all_are) {
  auto request = small_search();
  request.device_counts = {8, 12};
  const auto answer = found(request);
  ASSERT_EQ(answer.by_devices.size(), 2U);
  EXPECT_TRUE(answer.by_devices[0].feasible);
  EXPECT_EQ(answer.by_devices[1].devices, 12);
  EXPECT_THAT(answer.by_devices[1].impossible, HasSubstr("12 devices are not a whole number of nodes"));
  EXPECT_EQ(answer.best.front().devices, 8);
  request.device_counts = {12, 20};
  const auto wrong = orrery().plan(request);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("--device-counts: 12 devices are not a whole number of nodes"));
}

}  // namespace
}  // namespace orrery::api::plan_counts_test
