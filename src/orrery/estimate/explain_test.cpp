// The parts of an estimate are consistent with each other.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::estimate::explain_test {
namespace {

using parallel::Recompute;
using parallel::test::any_case;
using parallel::test::Case;
using parallel::test::SeededRandom;
using results::Estimate;

constexpr int kCases = 600;

Estimate estimate_of(const Case& c, bool terms = false) {
  return Estimator(c.model, c.cluster, c.stack, c.job).estimate(c.plan, {terms, terms});
}

Case case_of(std::uint64_t seed) {
  SeededRandom random(seed);
  Case c = any_case(random);
  c.stack.host.step_overhead = Seconds(1e-3);
  return c;
}

bool near(Seconds a, Seconds b) { return std::abs((a - b).value()) <= 1e-9 * std::abs(b.value()) + 1e-12; }

TEST(Explain, the_breakdown_sums_to_the_step_and_no_part_is_negative) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = case_of(seed);
    const Estimate e = estimate_of(c);
    const auto& b = e.breakdown;
    ASSERT_TRUE(near(b.total(), e.step_time)) << "seed " << seed;
    for (const Seconds part : {b.compute, b.recompute, b.exposed_comm, b.bubble, b.optimizer, b.offload, b.host}) {
      ASSERT_GE(part, Seconds()) << "seed " << seed;
    }
    ASSERT_GE(b.host, Seconds(1e-3));
    const bool issues = c.stack.host.launch_time > Seconds(0.0) || c.stack.host.kernel_launch_time > Seconds(0.0);
    if (!issues) { ASSERT_EQ(b.host, Seconds(1e-3)); }
    if (!c.plan.offload.any()) { ASSERT_EQ(b.offload, Seconds()); }
  }
}

TEST(Explain, groups_have_the_degrees_of_the_plan_as_members_on_their_dimensions) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = case_of(seed);
    const Estimate e = estimate_of(c);
    const auto size_of = [&](std::string_view name) {
      const auto found =
          std::find_if(e.groups.begin(), e.groups.end(), [&](const auto& group) { return group.group == name; });
      return found == e.groups.end() ? 1 : found->size;
    };
    ASSERT_EQ(size_of("tp"), c.plan.tp) << "seed " << seed;
    ASSERT_EQ(size_of("cp"), c.plan.cp) << "seed " << seed;
    ASSERT_EQ(size_of("pp"), c.plan.pp) << "seed " << seed;
    for (const auto& group : e.groups) {
      std::int64_t product = 1;
      for (const auto& extent : group.extents) { product *= extent.members; }
      ASSERT_EQ(product, group.size) << "seed " << seed << " " << group.group;
      ASSERT_GT(group.size, 1);
    }
  }
}

TEST(Explain, communication_by_group_sums_up_and_no_group_exposes_more_than_it_has) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Estimate e = estimate_of(case_of(seed));
    Seconds total, exposed;
    for (const auto& group : e.comm_by_group) {
      ASSERT_GE(group.exposed, Seconds()) << "seed " << seed << " " << group.group;
      ASSERT_LE(group.exposed.value(), group.total.value() * (1.0 + 1e-9) + 1e-12)
          << "seed " << seed << " " << group.group;
      total += group.total;
      exposed += group.exposed;
    }
    ASSERT_TRUE(near(e.comm_total, total));
    ASSERT_TRUE(near(e.comm_exposed, exposed));
    ASSERT_TRUE(near(e.breakdown.exposed_comm, exposed));
  }
}

TEST(Explain, passes_sum_to_compute_optimizer_and_the_exposed_time_of_every_group) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Estimate e = estimate_of(case_of(seed));
    ASSERT_EQ(e.passes.size(), 4U);
    Seconds compute;
    std::vector<Seconds> exposed(e.comm_by_group.size());
    for (const auto& pass : e.passes) {
      ASSERT_EQ(pass.exposed.size(), exposed.size());
      ASSERT_GE(pass.compute, Seconds()) << "seed " << seed;
      compute += pass.compute;
      for (std::size_t g = 0; g < exposed.size(); ++g) {
        ASSERT_GE(pass.exposed[g], Seconds()) << "seed " << seed << " " << pass.name;
        exposed[g] += pass.exposed[g];
      }
    }
    ASSERT_TRUE(near(compute, e.breakdown.compute + e.breakdown.optimizer)) << "seed " << seed;
    for (std::size_t g = 0; g < exposed.size(); ++g) {
      ASSERT_TRUE(near(exposed[g], e.comm_by_group[g].exposed)) << "seed " << seed << " " << e.comm_by_group[g].group;
    }
  }
}

// On one device: the passes are the kernels of their operators, once per micro-batch.
TEST(Explain, passes_of_one_device_are_its_kernels) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Case c = case_of(seed);
    c.plan = {};
    c.job.adapter = {};
    c.job.global_batch = c.plan.micro_batch = 1;
    c.cluster = parallel::test::cluster_of({1});
    const auto& gpu = c.cluster.accelerator;
    const workload::Slice slice = parallel::slice_of(c.job, c.plan);
    std::array<Seconds, 3> expected{};
    const auto add = [&](const std::vector<workload::Operator>& operators, double times) {
      for (const auto& op : operators) {
        expected[0] += times * cost::kernel_cost(op.forward, gpu).time;
        expected[1] += times * cost::kernel_cost(op.backward_input, gpu).time;
        expected[2] += times * cost::kernel_cost(op.backward_weight, gpu).time;
      }
    };
    parallel::test::for_each_tower_part(c.model, c.stack, slice, [&](const auto& part, bool) { add(part, 1.0); });
    add(workload::embedding_operators(c.model, c.stack, slice), 1.0);
    for (std::int64_t layer = 0; layer < c.model.depth(); ++layer) {
      add(workload::layer_operators(c.model, c.stack, slice, workload::layer_kind(c.model, layer)), 1.0);
    }
    add(workload::head_operators(c.model, c.stack, slice), 1.0);
    add(workload::mtp_operators(c.model, c.stack, slice), static_cast<double>(c.model.mtp_layers));
    const Estimate e = estimate_of(c);
    for (std::size_t p = 0; p < expected.size(); ++p) {
      ASSERT_TRUE(near(e.passes[p].compute, expected[p])) << "seed " << seed << " " << e.passes[p].name;
    }
  }
}

// Tensor parallelism communicates in forward and for input gradients; gradients of replicas are reduced for weights.
TEST(Explain, collectives_belong_to_the_pass_that_needs_them) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Case c = case_of(seed);
    c.stack.overlap.tp_backward = false;
    const Estimate e = estimate_of(c);
    const std::size_t tp = 0, dp = 3;
    ASSERT_EQ(e.comm_by_group[tp].group, "tp");
    ASSERT_EQ(e.comm_by_group[dp].group, "dp");
    const bool gathers_again = c.plan.sequence_parallel && c.plan.tp > 1;
    if (!gathers_again) { ASSERT_EQ(e.passes[2].exposed[tp], Seconds()) << "seed " << seed; }
    if (c.plan.zero < 3) { ASSERT_LE(e.passes[1].exposed[dp].value(), 1e-12 * e.step_time.value()) << "seed " << seed; }
  }
}

Seconds total_of(const Estimate& e, const std::string& name) {
  for (const auto& group : e.comm_by_group) {
    if (group.group == name) { return group.total; }
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(Explain, groups_of_one_do_not_communicate) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = case_of(seed);
    const Estimate e = estimate_of(c);
    ASSERT_EQ(e.comm_by_group.size(), 5U);
    if (c.plan.tp * c.plan.etp == 1) { ASSERT_EQ(total_of(e, "tp"), Seconds()); }
    if (c.plan.cp == 1) { ASSERT_EQ(total_of(e, "cp"), Seconds()); }
    if (c.plan.ep == 1) { ASSERT_EQ(total_of(e, "ep"), Seconds()); }
    if (c.plan.pp == 1) { ASSERT_EQ(total_of(e, "pp"), Seconds()); }
    // The gradient norm is reduced over all ranks; it counts as dp, like every group that is not tp, cp or ep.
    if (c.plan.devices() == 1) { ASSERT_EQ(total_of(e, "dp"), Seconds()); }
  }
}

TEST(Explain, utilisation_is_at_most_one_and_recompute_counts_in_hfu_only) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = case_of(seed);
    const Estimate e = estimate_of(c);
    ASSERT_GT(e.mfu, 0.0);
    ASSERT_LE(e.mfu, e.hfu);
    ASSERT_LE(e.hfu, 1.0);
    // Selective recompute replays attention cores: none, where the layers with recompute have other mixers.
    const bool may_replay_nothing = c.plan.recompute == Recompute::selective && c.model.has_mixers();
    if (!may_replay_nothing) { ASSERT_EQ(e.mfu == e.hfu, c.plan.recompute == Recompute::none); }
    ASSERT_NEAR(e.mfu, e.model_flops.value() / (e.step_time.value() * e.peak.value() * static_cast<double>(e.devices)),
                1e-12);
    ASSERT_NEAR(e.tokens_per_s * e.step_time.value(), static_cast<double>(c.job.global_batch * c.job.seq), 1e-6);
  }
}

// Full recompute runs the forward of the layers (not of the head) once more: 4/3 of the layers' FLOPs and the head's
// once. Per token, gpt has 24 h^2 + 4 s h forward FLOPs per layer and 2 h V for the logits.
TEST(Explain, full_recompute_adds_a_third_of_the_layers) {
  Case c;
  c.model = parallel::test::gpt(8, 1024, 8, 1024);
  c.job = {8, 512, hardware::Precision::bf16, parallel::Task::pretrain};
  c.plan.pp = 2;
  c.plan.recompute = Recompute::full;
  c.cluster = parallel::test::cluster_of({2});
  c.stack.attention.kernel = hardware::AttentionKernel::plain;
  const double tokens = 8.0 * 512.0, h = 1024.0;
  const double layers = tokens * 8.0 * (24.0 * h * h + 4.0 * 512.0 * h), logits = tokens * 2.0 * h * 1024.0;
  const Estimate e = estimate_of(c);
  EXPECT_NEAR(e.model_flops.value(), 3.0 * (layers + logits), 1.0);
  EXPECT_NEAR(e.hardware_flops.value(), 4.0 * layers + 3.0 * logits, 1.0);
}

bool is_collective(const results::Term& term) { return term.bound.find('/') != std::string::npos; }

// Terms are those of the critical rank: kernels sum to compute, recompute and optimizer of the breakdown, collectives
// to the totals of the groups except pp. Recomputed collectives are in both.
TEST(Explain, terms_times_counts_are_the_breakdown_s_kernels_and_the_groups_collectives) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = case_of(seed);
    const Estimate e = estimate_of(c, true);
    Seconds compute, recompute, optimizer, collectives;
    for (const auto& term : e.terms) {
      const Seconds time = term.count * term.time;
      if (term.bound == "second tier") { continue; }
      if (is_collective(term)) { collectives += time; }
      if (term.segment == "recompute") { recompute += time; }
      if (is_collective(term) || term.segment == "recompute") { continue; }
      (term.segment == "finish" ? optimizer : compute) += time;
    }
    ASSERT_TRUE(near(compute, e.breakdown.compute)) << "seed " << seed << " " << parallel::test::to_text(c);
    // Recomputed kernels overlap with their communication, so the breakdown has less than the sum.
    const bool overlaps = c.plan.tp_overlap != parallel::TpOverlap::none || c.plan.cp > 1;
    if (!overlaps) { ASSERT_TRUE(near(recompute, e.breakdown.recompute)) << "seed " << seed; }
    ASSERT_LE(e.breakdown.recompute.value(), recompute.value() * (1.0 + 1e-9)) << "seed " << seed;
    ASSERT_TRUE(near(collectives, e.comm_total - total_of(e, "pp"))) << "seed " << seed;
    ASSERT_LE(optimizer.value(), e.breakdown.optimizer.value() * (1.0 + 1e-9)) << "seed " << seed;
    if (c.plan.pp == 1) { ASSERT_TRUE(near(optimizer, e.breakdown.optimizer)) << "seed " << seed; }
  }
}

TEST(Explain, classes_cover_every_stage_and_the_fullest_one_is_the_memory_of_the_answer) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = case_of(seed);
    const Estimate e = estimate_of(c, true);
    std::int64_t stages = 0;
    Bytes fullest;
    for (const auto& rank_class : e.classes) {
      ASSERT_EQ(rank_class.first_stage, stages);
      stages += rank_class.stages;
      fullest = max(fullest, rank_class.memory);
      ASSERT_LE(rank_class.busy.value(), e.step_time.value() * (1.0 + 1e-9));
    }
    ASSERT_EQ(stages, c.plan.pp);
    ASSERT_EQ(fullest, e.memory.total());
    ASSERT_LT(e.memory.stage, c.plan.pp);
  }
}

// With `interference` in the stack, gathers and reductions slow concurrent compute and the step is longer.
TEST(Explain, the_note_on_slowed_compute_matches_the_stack_s_interference) {
  const std::string nothing = "slowdown of compute by concurrent communication";
  const std::string others = "slowdown of compute by concurrent collectives of the same layer";
  Case c;
  c.model = parallel::test::gpt(8, 1024, 8, 1024);
  c.job = {8, 512, hardware::Precision::bf16, parallel::Task::pretrain};
  c.plan.dp = 4;
  c.cluster = parallel::test::cluster_of({4});
  for (const int zero : {0, 1, 2, 3}) {
    c.plan.zero = zero;
    c.stack.overlap.interference = 0.0;
    const Estimate without = estimate_of(c);
    c.stack.overlap.interference = 0.3;
    const Estimate with = estimate_of(c);
    EXPECT_EQ(without.not_modelled.front(), nothing);
    EXPECT_EQ(with.not_modelled.front(), others) << zero;
    EXPECT_GE(with.step_time, without.step_time) << zero;
    EXPECT_TRUE(zero < 2 || with.step_time > without.step_time) << zero;
  }
}

TEST(Explain, details_are_given_on_request_only) {
  const Estimate e = estimate_of(case_of(1));
  EXPECT_TRUE(e.terms.empty());
  EXPECT_TRUE(e.classes.empty());
}

std::vector<std::string_view> names_of(const results::PlanSummary& plan) {
  std::vector<std::string_view> names;
  for (const auto& value : plan.values) { names.push_back(value.name); }
  return names;
}

// JSON documents list the choices of a plan in this order; embedding tables come last.
TEST(Explain, choices_of_a_plan_keep_their_order_in_documents) {
  const std::vector<std::string_view> first = {
      "tp",         "cp",          "pp",         "ep",        "etp",      "dp",
      "vpp",        "micro_batch", "zero",       "recompute", "schedule", "sequence_parallel",
      "tp_overlap", "cp_method",   "dp_overlap", "shard",     "offload",  "placement"};
  const auto names = names_of(estimate_of(case_of(0)).plan);
  ASSERT_GT(names.size(), first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), names.begin()));
  EXPECT_EQ(names.back(), "micro_batches");
}

TEST(Explain, results_repeat_the_plan_and_the_job) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Case c = case_of(seed);
    const Estimate e = estimate_of(c);
    ASSERT_EQ(e.plan.number("tp"), c.plan.tp);
    ASSERT_EQ(e.plan.number("pp"), c.plan.pp);
    ASSERT_EQ(e.plan.number("dp"), c.plan.dp);
    ASSERT_EQ(e.plan.number("vpp"), c.plan.vpp);
    ASSERT_EQ(e.plan.number("micro_batch"), c.plan.micro_batch);
    ASSERT_EQ(e.plan.number("micro_batches"), parallel::micro_batches(c.job, c.plan));
    ASSERT_EQ(e.plan.is_on("sequence_parallel"), c.plan.sequence_parallel);
    ASSERT_EQ(e.plan.number("zero"), c.plan.zero);
    ASSERT_EQ(e.plan.is_on("dp_overlap"), parallel::reduces_under_backward(c.plan, c.stack));
    ASSERT_EQ(e.devices, c.cluster.devices);
    ASSERT_EQ(e.global_batch, c.job.global_batch);
    ASSERT_EQ(e.seq, c.job.seq);
    ASSERT_EQ(e.model, c.model.name);
    ASSERT_EQ(e.precision, "bf16");
    ASSERT_EQ(e.infeasible_reason.empty(), e.feasible);
  }
}

TEST(Explain, a_precision_that_the_accelerator_lacks_breaks_the_contract) {
  Case c = case_of(1);
  c.cluster.accelerator.matrix_peak.erase("fp8");
  c.job.precision = hardware::Precision::fp8;
  EXPECT_THROW((void)estimate_of(c), InternalError);
}

}  // namespace
}  // namespace orrery::estimate::explain_test
