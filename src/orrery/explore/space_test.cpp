// The built-in space against all combinations of small integers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/explore/test_enumerate.hpp"
#include "orrery/explore/test_spaces.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore::space_test {
namespace {

using parallel::Plan;
using parallel::Recompute;
using parallel::ScheduleKind;
using parallel::test::any_of;
using workload::ContextMethod;

struct Job {
  workload::Model model;
  parallel::Job job;
  hardware::Cluster cluster;
};

// Dense models and mixtures, training and inference, sequences too short and long enough for cp.
Job any_job() {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  Job j;
  const std::int64_t kv_heads = draw(1, 9), heads = kv_heads * draw(1, 4);
  j.model = parallel::test::llama(draw(1, 20), heads * 64, heads, kv_heads, 48 * draw(1, 9), 4096);
  j.model.max_seq = 1 << 20;
  if (draw(0, 2) == 1) { j.model.experts = test::any_experts(draw); }
  j.job = {draw(1, 25), any_of(draw, {draw(1, 65), 8192, 16'384, 24'576}), hardware::Precision::bf16,
           parallel::Task::pretrain};
  if (draw(0, 4) == 0) {
    j.job.task = parallel::Task::inference;
    j.job.prompt = draw(1, 65);
    j.job.generate = draw(1, 9);
    j.job.seq = j.job.prompt + j.job.generate;
  }
  j.cluster = parallel::test::any_cluster(draw, any_of(draw, {1, 2, 3, 4, 6, 8, 12, 16, 18, 24}));
  return j;
}

// Valid combinations that the axes leave out. A fixed zero stage is kept where there is nothing to shard over.
bool is_on_the_axes(const Job& j, const Plan& plan, bool zero_fixed) {
  const bool serves = j.job.is_inference(), experts = j.model.has_experts();
  const bool long_enough = plan.cp == 1 || (!serves && j.job.seq / plan.cp >= 4096);
  const bool replicated = plan.cp * plan.dp > 1 || (experts && plan.expert_replicas() > 1);
  return long_enough && (plan.etp == 1 || plan.etp == plan.tp) &&
         (plan.cp > 1 || plan.cp_method == ContextMethod::ring) && (plan.zero == 0 || zero_fixed || replicated);
}

// In the order of the axes; divisibility is tested for every combination.
class Combinations {
 public:
  Combinations(const Job& j, const Plan& usual, bool zero_fixed) : j_(j), zero_fixed_(zero_fixed), plan_(usual) {}

  std::vector<Plan> all() {
    const std::int64_t devices = j_.cluster.devices;
    for (plan_.tp = 1; plan_.tp <= devices; ++plan_.tp) {
      for (plan_.cp = 1; plan_.tp * plan_.cp <= devices; ++plan_.cp) {
        for (plan_.pp = 1; plan_.tp * plan_.cp * plan_.pp <= devices; ++plan_.pp) {
          plan_.dp = devices / (plan_.tp * plan_.cp * plan_.pp);
          if (plan_.devices() == devices) { over_experts(); }
        }
      }
    }
    return std::move(plans_);
  }

 private:
  void over_experts() {
    for (plan_.ep = 1; plan_.ep <= std::max<std::int64_t>(1, j_.model.experts.count); ++plan_.ep) {
      for (plan_.etp = 1; plan_.etp <= plan_.tp; ++plan_.etp) { over_sizes(); }
    }
  }

  void over_sizes() {
    for (plan_.vpp = 1; plan_.vpp <= j_.model.depth(); ++plan_.vpp) {
      plan_.schedule = plan_.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
      for (plan_.micro_batch = 1; plan_.micro_batch <= j_.job.global_batch; ++plan_.micro_batch) { over_choices(); }
    }
  }

  void over_choices() {
    for (const auto method : {ContextMethod::ring, ContextMethod::ulysses}) {
      for (const bool split : {false, true}) {
        for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          for (const int zero : {0, 1, 2, 3}) {
            plan_.cp_method = method;
            plan_.sequence_parallel = split;
            plan_.recompute = recompute;
            plan_.zero = zero;
            const bool expected = is_on_the_axes(j_, plan_, zero_fixed_) &&
                                  parallel::is_valid(j_.model, j_.job, plan_, j_.cluster.devices);
            if (expected) { plans_.push_back(plan_); }
          }
        }
      }
    }
  }

  const Job& j_;
  bool zero_fixed_;
  Plan plan_;
  std::vector<Plan> plans_;
};

std::vector<Plan> all_combinations(const Job& j, bool dp_overlap, bool zero_fixed = false) {
  Plan usual;
  usual.dp_overlap = dp_overlap;
  return Combinations(j, usual, zero_fixed).all();
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
  parallel::PartialPlan fixed;
  const auto fix = [&](auto& value, auto Plan::* member, bool always = false) {
    if (!always && *rc::gen::arbitrary<bool>()) { return; }
    value = chosen.*member;
    std::erase_if(plans, [&](const Plan& plan) { return plan.*member != chosen.*member; });
  };
  fix(fixed.tp, &Plan::tp);
  fix(fixed.cp, &Plan::cp);
  fix(fixed.pp, &Plan::pp);
  fix(fixed.ep, &Plan::ep);
  if (chosen.etp == 1 || fixed.tp) {
    fix(fixed.etp, &Plan::etp);
  }  // with another tp it would not be a value of the axis
  fix(fixed.dp, &Plan::dp);
  fix(fixed.vpp, &Plan::vpp);
  fix(fixed.micro_batch, &Plan::micro_batch);
  fix(fixed.sequence_parallel, &Plan::sequence_parallel);
  if (zero_fixed) { fix(fixed.zero, &Plan::zero, true); }
  fix(fixed.recompute, &Plan::recompute);
  fix(fixed.schedule, &Plan::schedule);
  if (chosen.cp > 1 && *rc::gen::arbitrary<bool>()) {  // has no effect with cp 1
    fixed.cp_method = chosen.cp_method;
    std::erase_if(plans, [&](const Plan& plan) { return plan.cp > 1 && plan.cp_method != chosen.cp_method; });
  }
  RC_ASSERT(enumerate(j.model, j.job, j.cluster, fixed, true) == plans);
}

// 16 devices in nodes of 2, 32 layers, 64 heads: by default the space has tp up to 4, vpp up to 8, micro-batches up to
// 16.
TEST(Space, a_fixed_value_may_lie_beyond_the_axis) {
  const auto model = parallel::test::llama(32, 4096, 64, 64, 4096, 4096);
  const parallel::Job job{64, 512, hardware::Precision::bf16, parallel::Task::pretrain};
  const auto cluster = parallel::test::cluster_of({2, 8});
  parallel::PartialPlan fixed;
  fixed.tp = 16;
  EXPECT_FALSE(enumerate(model, job, cluster, fixed, true).empty());
  fixed = {};
  fixed.vpp = 16;
  EXPECT_FALSE(enumerate(model, job, cluster, fixed, true).empty());
  fixed = {};
  fixed.micro_batch = 32;
  EXPECT_FALSE(enumerate(model, job, cluster, fixed, true).empty());
}

TEST(Space, fixed_values_that_contradict_leave_no_plan) {
  const auto model = parallel::test::llama(8, 1024, 16, 16, 4096, 4096);
  const parallel::Job job{64, 512, hardware::Precision::bf16, parallel::Task::pretrain};
  const auto cluster = parallel::test::cluster_of({2, 8});
  for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 62}) {
    for (auto member : {&parallel::PartialPlan::tp, &parallel::PartialPlan::cp, &parallel::PartialPlan::pp,
                        &parallel::PartialPlan::dp, &parallel::PartialPlan::ep, &parallel::PartialPlan::etp,
                        &parallel::PartialPlan::micro_batch}) {
      parallel::PartialPlan fixed;
      fixed.*member = value;
      EXPECT_TRUE(enumerate(model, job, cluster, fixed, true).empty()) << value;
    }
  }
}

struct Mixture {
  workload::Model model = parallel::test::llama(61, 1024, 16, 16, 4096, 4096);
  parallel::Job job{64, 4096, hardware::Precision::bf16, parallel::Task::pretrain};
  hardware::Cluster cluster = parallel::test::cluster_of({8, 8});
  Mixture() {
    model.experts = {.count = 8, .active = 2, .ffn = 1024};
    model.max_seq = 1 << 20;
  }
  [[nodiscard]] std::vector<Plan> plans(const parallel::PartialPlan& fixed = {}) const {
    return enumerate(model, job, cluster, fixed, true);
  }
};

TEST(Space, mixtures_have_ep_and_sequence_parallelism_with_tp) {
  const auto plans = Mixture().plans();
  for (const std::int64_t ep : {1, 2, 4, 8}) {
    EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), [&](const Plan& plan) { return plan.ep == ep; })) << ep;
  }
  for (const Plan& plan : plans) {
    ASSERT_EQ(plan.sequence_parallel, plan.tp > 1);
    ASSERT_TRUE(plan.etp == 1 || plan.etp == plan.tp);
    ASSERT_EQ(plan.stage_ranks() % (plan.ep * plan.etp), 0);
    ASSERT_EQ(plan.cp, 1);  // 4,096 tokens
  }
}

// 61 layers over 16 stages, as in DeepSeek-V3: some stages have 3 layers, others 4.
TEST(Space, layers_need_not_divide_over_stages) {
  parallel::PartialPlan fixed;
  fixed.pp = 16;
  EXPECT_FALSE(Mixture().plans(fixed).empty());
}

TEST(Space, context_parallelism_leaves_every_rank_4096_tokens) {
  Mixture m;
  for (const auto& [seq, widest] : {std::pair{8191, 1}, {8192, 2}, {131'072, 32}, {262'144, 64}}) {
    m.job.seq = seq;
    std::int64_t found = 0;
    for (const Plan& plan : m.plans()) { found = std::max(found, plan.cp); }
    EXPECT_EQ(found, widest) << seq;
  }
}

TEST(Space, the_schedule_is_fixed_or_1f1b_and_interleaved) {
  Mixture m;
  for (const Plan& plan : m.plans()) {
    ASSERT_EQ(plan.schedule, plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b);
  }
  for (const auto schedule : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble,
                              ScheduleKind::dualpipe, ScheduleKind::interleaved}) {
    parallel::PartialPlan fixed;
    fixed.schedule = schedule;
    const auto plans = m.plans(fixed);
    EXPECT_FALSE(plans.empty());
    for (const Plan& plan : plans) {
      ASSERT_EQ(plan.schedule, schedule);
      ASSERT_EQ(plan.vpp > 1, schedule == ScheduleKind::interleaved);
    }
  }
}

TEST(Space, choices_without_an_axis_are_the_same_in_every_plan) {
  Mixture m;
  parallel::PartialPlan fixed;
  fixed.tp_overlap = parallel::TpOverlap::ring;
  fixed.shard = 2;
  fixed.first_stage_layers = 2;
  fixed.last_stage_layers = 3;
  const auto plans = m.plans(fixed);
  EXPECT_FALSE(plans.empty());
  for (const Plan& plan : plans) {
    ASSERT_EQ(plan.tp_overlap, parallel::TpOverlap::ring);
    ASSERT_EQ(plan.shard, 2);
    ASSERT_GT(plan.tp, 1);  // a group of one has nothing to overlap
    ASSERT_GT(plan.pp, 1);  // no ends
    ASSERT_GT(plan.zero, 0);
    ASSERT_EQ(plan.first_stage_layers, 2);
    ASSERT_EQ(plan.last_stage_layers, 3);
  }
  fixed = {};
  fixed.embedding_as_layer = fixed.head_as_layer = true;
  for (const Plan& plan : m.plans(fixed)) { ASSERT_TRUE(plan.embedding_as_layer && plan.head_as_layer); }
}

TEST(Space, offload_needs_a_second_tier) {
  Mixture m;
  parallel::PartialPlan fixed;
  fixed.offload = parallel::Offload{.optimizer = true};
  m.cluster.second_tier = {};
  EXPECT_TRUE(m.plans(fixed).empty());
  m.cluster.second_tier.memory = 512_GiB;
  m.cluster.second_tier.bandwidth = 50_GBps;
  const auto plans = m.plans(fixed);
  EXPECT_FALSE(plans.empty());
  for (const Plan& plan : plans) { ASSERT_TRUE(plan.offload.optimizer); }
}

TEST(Space, inference_has_no_training_axes) {
  Mixture m;
  m.job.task = parallel::Task::inference;
  m.job.global_batch = 256;
  m.job.prompt = 4096;
  m.job.generate = 4096;
  m.job.seq = 8192;
  const auto plans = m.plans();
  std::int64_t largest = 0;
  for (const Plan& plan : plans) {
    ASSERT_EQ(plan.cp, 1);
    ASSERT_EQ(plan.vpp, 1);
    ASSERT_EQ(plan.zero, 0);
    ASSERT_EQ(plan.recompute, Recompute::none);
    largest = std::max(largest, plan.micro_batch);
  }
  EXPECT_EQ(largest, 256);  // dp 1, all at once
}

TEST(Space, dp_overlap_is_the_stack_s_default_unless_it_is_fixed) {
  const auto model = parallel::test::llama(2, 128, 2, 2, 128, 1024);
  const parallel::Job job{2, 16, hardware::Precision::bf16, parallel::Task::pretrain};
  const auto cluster = parallel::test::cluster_of({2});
  EXPECT_FALSE(enumerate(model, job, cluster, {}, false).front().dp_overlap);
  parallel::PartialPlan fixed;
  fixed.dp_overlap = true;
  EXPECT_TRUE(enumerate(model, job, cluster, fixed, false).front().dp_overlap);
}

}  // namespace
}  // namespace orrery::explore::space_test
