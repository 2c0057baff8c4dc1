// The space of plans against all combinations of all small integers.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/explore/space.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore {
namespace {

using parallel::Plan;
using parallel::Recompute;
using parallel::ScheduleKind;
using parallel::test::any_of;

struct Job {
  workload::Model model;
  parallel::Job job;
  hardware::Cluster cluster;
};

Job any_job() {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  Job j;
  const std::int64_t kv_heads = draw(1, 9), heads = kv_heads * draw(1, 4);
  j.model = parallel::test::llama(draw(1, 20), heads * 64, heads, kv_heads, 48 * draw(1, 9), 4096);
  j.job = {draw(1, 49), draw(1, 65), hardware::Precision::bf16, parallel::Task::pretrain};
  j.cluster = parallel::test::any_cluster(draw, any_of(draw, {1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 32}));
  return j;
}

// In the order of the axes, and by their words: what divides is tested, nothing is enumerated cleverly. A zero stage
// that is fixed is not dropped where there is nothing to shard over.
std::vector<Plan> all_combinations(const Job& j, bool dp_overlap, bool zero_fixed = false) {
  const std::int64_t devices = j.cluster.devices;
  std::vector<Plan> plans;
  Plan plan;
  plan.dp_overlap = dp_overlap;
  const auto over_choices = [&] {
    for (const bool split : {false, true}) {
      for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        for (const int zero : {0, 1, 2, 3}) {
          plan.sequence_parallel = split;
          plan.recompute = recompute;
          plan.zero = zero;
          if ((split && plan.tp == 1) || (zero > 0 && plan.dp == 1 && !zero_fixed)) { continue; }
          if (parallel::is_valid(j.model, j.job, plan, devices)) { plans.push_back(plan); }
        }
      }
    }
  };
  for (plan.tp = 1; plan.tp <= std::min(devices, 2 * j.cluster.node_size()); ++plan.tp) {
    for (plan.pp = 1; plan.tp * plan.pp <= devices; ++plan.pp) {
      plan.dp = devices / (plan.tp * plan.pp);
      for (plan.vpp = 1; plan.vpp <= 8; ++plan.vpp) {
        plan.schedule = plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
        for (plan.micro_batch = 1; plan.micro_batch <= 16; ++plan.micro_batch) { over_choices(); }
      }
    }
  }
  return plans;
}

RC_GTEST_PROP(Space, holds_every_valid_combination_of_its_axes_in_their_order, ()) {
  const Job j = any_job();
  const bool overlap = *rc::gen::arbitrary<bool>();
  const auto plans = enumerate(j.model, j.job, j.cluster, {}, overlap);
  RC_ASSERT(plans == all_combinations(j, overlap));
}

RC_GTEST_PROP(Space, a_fixed_axis_keeps_the_plans_that_have_its_value, ()) {
  const Job j = any_job();
  const bool zero_fixed = *rc::gen::arbitrary<bool>();
  auto plans = all_combinations(j, true, zero_fixed);
  RC_PRE(!plans.empty());
  const Plan chosen = plans[*rc::gen::inRange<std::size_t>(0, plans.size())];
  Fixed fixed;
  const auto fix = [&](auto& value, auto Plan::* member, bool always = false) {
    if (!always && *rc::gen::arbitrary<bool>()) { return; }
    value = chosen.*member;
    std::erase_if(plans, [&](const Plan& plan) { return plan.*member != chosen.*member; });
  };
  fix(fixed.tp, &Plan::tp);
  fix(fixed.pp, &Plan::pp);
  fix(fixed.dp, &Plan::dp);
  fix(fixed.vpp, &Plan::vpp);
  fix(fixed.micro_batch, &Plan::micro_batch);
  fix(fixed.sequence_parallel, &Plan::sequence_parallel);
  if (zero_fixed) { fix(fixed.zero, &Plan::zero, true); }
  fix(fixed.recompute, &Plan::recompute);
  RC_ASSERT(enumerate(j.model, j.job, j.cluster, fixed, true) == plans);
}

// 16 devices in nodes of 2, 32 layers, 64 heads: on its own the space has tp up to 4, vpp up to 8, micro-batches up
// to 16.
TEST(Space, a_fixed_value_may_lie_beyond_the_axis) {
  const auto model = parallel::test::llama(32, 4096, 64, 64, 4096, 4096);
  const parallel::Job job{64, 512, hardware::Precision::bf16, parallel::Task::pretrain};
  const auto cluster = parallel::test::cluster_of({2, 8});
  Fixed fixed;
  fixed.tp = 16;
  EXPECT_FALSE(enumerate(model, job, cluster, fixed, true).empty());
  fixed = {};
  fixed.vpp = 16;
  EXPECT_FALSE(enumerate(model, job, cluster, fixed, true).empty());
  fixed = {};
  fixed.micro_batch = 32;
  EXPECT_FALSE(enumerate(model, job, cluster, fixed, true).empty());
}

TEST(Space, fixed_values_without_a_meaning_leave_nothing) {
  const auto model = parallel::test::llama(8, 1024, 16, 16, 4096, 4096);
  const parallel::Job job{64, 512, hardware::Precision::bf16, parallel::Task::pretrain};
  const auto cluster = parallel::test::cluster_of({2, 8});
  for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 62}) {
    for (auto member : {&Fixed::tp, &Fixed::pp, &Fixed::dp, &Fixed::micro_batch}) {
      Fixed fixed;
      fixed.*member = value;
      EXPECT_TRUE(enumerate(model, job, cluster, fixed, true).empty()) << value;
    }
  }
}

TEST(Space, overlap_is_the_stack_s_habit_unless_it_is_fixed) {
  const auto model = parallel::test::llama(2, 128, 2, 2, 128, 1024);
  const parallel::Job job{2, 16, hardware::Precision::bf16, parallel::Task::pretrain};
  const auto cluster = parallel::test::cluster_of({2});
  EXPECT_FALSE(enumerate(model, job, cluster, {}, false).front().dp_overlap);
  Fixed fixed;
  fixed.dp_overlap = true;
  EXPECT_TRUE(enumerate(model, job, cluster, fixed, false).front().dp_overlap);
}

}  // namespace
}  // namespace orrery::explore
