// Every reported change of the winner is confirmed: exhaustive searches on both sides of it, with the figure changed by
// hand.
#include "orrery/api/what_if.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"

namespace orrery::api::what_if_test {
namespace {

PlanRequest small_search() {
  PlanRequest request;
  request.job.model = "llama-3.1-8b";
  request.job.cluster = "dgx-h100";
  request.job.devices = 16;
  request.job.global_batch = 96;
  request.job.seq = 8192;
  request.threads = 1;
  request.top = 1;
  request.job.cp_method = workload::ContextMethod::ring;
  request.job.zero = 1;
  request.job.vpp = 1;
  return request;
}

using Degrees = std::array<std::int64_t, 6>;
Degrees degrees_of(const results::PlanSummary& plan) {
  return {plan.number("tp"), plan.number("cp"), plan.number("pp"),
          plan.number("dp"), plan.number("ep"), plan.number("etp")};
}

class WhatIf : public testing::Test {
 protected:
  // The best plan, found without bounds.
  [[nodiscard]] results::Estimate best(const Problem& problem) {
    request_.exhaustive = true;
    auto space = space_of(request_, problem);
    EXPECT_TRUE(space);
    Planning planning(request_, problem, std::move(*space));
    const auto answer = planning.run();
    return answer.best.empty() ? results::Estimate{} : answer.best.front();
  }

  // Multiplies the figure with this name by a factor.
  static Problem changed(Problem problem, const std::string& knob, double factor) {
    auto& cluster = problem.inputs.cluster;
    auto& chip = cluster.accelerator;
    if (knob == "device_memory") { chip.memory = factor * chip.memory; }
    if (knob == "memory_bandwidth") { chip.memory_bandwidth = factor * chip.memory_bandwidth; }
    if (knob == "global_batch") {
      problem.job.global_batch = std::llround(factor * static_cast<double>(problem.job.global_batch));
    }
    if (knob == "matrix_peak") {
      for (auto& [name, peak] : chip.matrix_peak) { peak = factor * peak; }
    }
    for (auto& dimension : cluster.dimensions) {
      if (knob == "bandwidth." + dimension.name) { dimension.bandwidth = factor * dimension.bandwidth; }
    }
    return problem;
  }

  PlanRequest request_ = small_search();
};

TEST_F(WhatIf, other_degrees_win_at_a_flip_and_the_same_ones_just_before_it) {
  const std::string data = ORRERY_SOURCE_DATA_DIR;
  const auto problem = read_problem(data, hardware::Catalogue(data), request_);
  ASSERT_TRUE(problem) << problem.error().text();
  Planning planning(request_, *problem, *space_of(request_, *problem));
  const auto now = degrees_of(planning.run().best.front().plan);
  const auto flips = what_if(request_, *problem, planning.winner().point.plan, nullptr);
  ASSERT_EQ(flips.size(), 12U);  // memory, peak, memory bandwidth, two dimensions, batch; up and down
  int found = 0, tried = 0;
  for (const auto& flip : flips) {
    if (orrery::test::kSanitizers && tried++ % 5 != 0) { continue; }
    SCOPED_TRACE(flip.knob + (flip.up ? " up" : " down"));
    EXPECT_EQ(degrees_of(best(changed(*problem, flip.knob, flip.same_until)).plan), now);
    for (const double look : {1.25, 1.5, 2.0, 3.0, 4.0}) {  // no other winner at any tried value nearer to 1
      const double factor = flip.up ? look : 1.0 / look;
      const bool is_nearer = flip.up ? factor <= flip.same_until : factor >= flip.same_until;
      if (!is_nearer || flip.knob == "global_batch") { continue; }
      EXPECT_EQ(degrees_of(best(changed(*problem, flip.knob, factor)).plan), now) << factor;
    }
    if (!flip.factor) { continue; }
    ++found;
    const auto other = best(changed(*problem, flip.knob, *flip.factor));
    if (!flip.winner) {
      EXPECT_EQ(other.devices, 0);  // nothing fits
      continue;
    }
    EXPECT_NE(degrees_of(other.plan), now);
    EXPECT_EQ(degrees_of(other.plan), degrees_of(flip.winner->plan));
    EXPECT_EQ(other.step_time, flip.winner->step_time);
    if (flip.knob != "global_batch") {
      EXPECT_LE(std::max(*flip.factor / flip.same_until, flip.same_until / *flip.factor), 1.02);
    }
  }
  EXPECT_GE(found, orrery::test::cases(3));
}

// 96 sequences on 16 devices: dp is 1, 2, 4, 8 or 16, all of which stay possible at multiples of 16.
TEST_F(WhatIf, batches_keep_the_replicas_possible) {
  const std::string data = ORRERY_SOURCE_DATA_DIR;
  const auto problem = read_problem(data, hardware::Catalogue(data), request_);
  ASSERT_TRUE(problem);
  parallel::Plan unknown;  // no search finds this plan, so every tried value changes the winner
  unknown.tp = 3;
  for (const auto& flip : what_if(request_, *problem, unknown, nullptr)) {
    if (flip.knob != "global_batch") { continue; }
    ASSERT_TRUE(flip.factor);
    EXPECT_EQ(std::llround(flip.value) % 16, 0) << flip.value;
    EXPECT_EQ(flip.up, flip.value > 96);
  }
}

TEST_F(WhatIf, is_about_one_number_of_devices) {
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  request_.what_if = true;
  request_.device_counts = {8, 16};
  const auto wrong = orrery.plan(request_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().diagnostics.front().place.path, "--what-if");
}

}  // namespace
}  // namespace orrery::api::what_if_test
