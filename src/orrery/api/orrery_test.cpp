// The public functions of the library, with the shipped catalogue.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"

namespace orrery::api::orrery_test {
namespace {

using testing::HasSubstr;

const Orrery& orrery() {
  static const Orrery instance(ORRERY_DATA_DIR);
  return instance;
}

estimate::Request request(const std::string& model, std::int64_t devices, std::int64_t batch, std::int64_t seq) {
  estimate::Request r;
  r.model = model;
  r.cluster = "dgx-a100";
  r.devices = devices;
  r.global_batch = batch;
  r.seq = seq;
  return r;
}

TEST(Api, an_estimate_repeats_its_request_and_lists_chosen_values) {
  auto asked = request("llama-2-7b", 16, 64, 4096);
  asked.tp = 2;
  const auto answer = orrery().estimate(asked, {true, true});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->estimate.model, "llama-2-7b");
  EXPECT_EQ(answer->estimate.cluster, "dgx-a100");
  EXPECT_EQ(answer->estimate.stack, "megatron-core");
  EXPECT_EQ(answer->estimate.devices, 16);
  EXPECT_EQ(answer->estimate.plan.number("dp"), 8);
  EXPECT_TRUE(answer->estimate.feasible);
  EXPECT_FALSE(answer->estimate.terms.empty());
  EXPECT_EQ(answer->chosen.size(), 5U);
}

// Independent errors are reported together.
TEST(Api, all_mistakes_of_a_request_come_at_once) {
  auto asked = request("llama-2-7c", 16, 64, 4096);
  asked.cluster = "dgx-a10";
  asked.stack = "megatron-cor";
  asked.lora = 16;
  const auto answer = orrery().estimate(asked);
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().answer_is_no);
  const std::string text = answer.error().text();
  for (const char* part : {"--model", "llama-2-7b", "--cluster", "dgx-a100", "--stack", "megatron-core", "--lora"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Api, a_precision_without_matrix_units_is_refused_with_those_there_are) {
  auto asked = request("llama-2-7b", 16, 64, 4096);
  asked.precision = hardware::Precision::fp8;
  const auto answer = orrery().estimate(asked);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(), "--precision: a100-sxm-80gb has no \"fp8\" matrix units; valid: bf16, fp16, tf32");
}

TEST(Api, a_plan_that_does_not_fit_is_priced_and_says_so) {
  const auto answer = orrery().estimate(request("llama-3.1-405b", 8, 8, 8192));
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_FALSE(answer->estimate.feasible);
  EXPECT_EQ(answer->estimate.infeasible_reason, "memory");
  EXPECT_GT(answer->estimate.step_time, Seconds());
}

TEST(Api, a_search_finds_what_exhaustive_pricing_finds_and_estimates_it) {
  PlanRequest asked;
  asked.job = request("gpt2-xl", 16, 128, 1024);
  asked.variants = true;
  asked.top = 7;
  asked.threads = 2;
  const auto pruned = orrery().plan(asked);
  asked.exhaustive = true;
  asked.threads = 1;
  const auto exhaustive = orrery().plan(asked);
  ASSERT_TRUE(pruned && exhaustive);
  ASSERT_EQ(pruned->best.size(), 7U);
  EXPECT_GT(pruned->space.pruned, 0);
  EXPECT_EQ(exhaustive->space.pruned, 0);
  EXPECT_EQ(pruned->space.points, exhaustive->space.points);
  for (std::size_t i = 0; i < 7; ++i) {
    const auto &a = pruned->best[i], &b = exhaustive->best[i];
    EXPECT_EQ(a.step_time, b.step_time);
    EXPECT_EQ(a.plan.number("tp"), b.plan.number("tp"));
    EXPECT_EQ(a.plan.number("pp"), b.plan.number("pp"));
    EXPECT_EQ(a.plan.number("micro_batch"), b.plan.number("micro_batch"));
    EXPECT_EQ(a.plan.number("zero"), b.plan.number("zero"));
    EXPECT_TRUE(a.feasible);
    if (i > 0) { EXPECT_GE(a.step_time, pruned->best[i - 1].step_time); }
  }
}

// The estimate of the winner's plan, given as a request, is the same.
TEST(Api, the_best_plan_given_as_a_request_takes_as_long) {
  PlanRequest asked;
  asked.job = request("llama-2-7b", 16, 64, 4096);
  asked.top = 1;
  const auto found = orrery().plan(asked);
  ASSERT_TRUE(found);
  const auto& best = found->best.front();
  const auto again = orrery().estimate(request_of(asked.job, best.plan));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->estimate.step_time, best.step_time);
}

TEST(Api, fixed_axes_stay_fixed_and_explanations_are_given_on_request) {
  PlanRequest asked;
  asked.job = request("llama-2-7b", 16, 64, 4096);
  asked.job.tp = 4;
  asked.job.zero = 3;
  asked.explain = true;
  const auto found = orrery().plan(asked);
  ASSERT_TRUE(found);
  for (const auto& best : found->best) {
    EXPECT_EQ(best.plan.number("tp"), 4);
    EXPECT_EQ(best.plan.number("zero"), 3);
  }
  EXPECT_GE(found->explanation.size(), 4U);
}

TEST(Api, a_search_in_which_nothing_fits_is_an_answer_and_not_a_mistake) {
  PlanRequest asked;
  asked.job = request("gpt3-175b", 8, 8, 2048);
  const auto found = orrery().plan(asked);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_TRUE(found->best.empty());
  EXPECT_GT(found->space.points, 0);
  EXPECT_THAT(found->nothing_fits, HasSubstr("plans fits in the memory of a100-sxm-80gb"));
}

TEST(Api, fixed_values_that_no_plan_can_have_are_a_mistake_with_a_reason) {
  PlanRequest asked;
  asked.job = request("llama-2-7b", 16, 64, 4096);  // 32 heads and layers
  const auto complaint = [&](auto field, auto value) {
    PlanRequest fixed = asked;
    fixed.job.*field = value;
    const auto found = orrery().plan(fixed);
    return found ? found->nothing_fits : found.error().text();
  };
  using Fixed = parallel::PartialPlan;
  EXPECT_THAT(complaint(&Fixed::tp, 3), HasSubstr("--tp: \"3\" does not divide the 32 attention heads"));
  EXPECT_THAT(complaint(&Fixed::dp, 3), HasSubstr("--dp: dp 3 does not divide the 16 devices"));
  EXPECT_THAT(complaint(&Fixed::micro_batch, 3), HasSubstr("--micro-batch: no plan of the search has micro-batch 3"));
  EXPECT_THAT(complaint(&Fixed::vpp, 1'000'000), HasSubstr("--vpp: no plan of the search has vpp 1000000"));
  asked.job.tp = 1;
  EXPECT_EQ(complaint(&Fixed::sequence_parallel, true), "--sequence-parallel: needs --tp of at least 2");
  asked.job.tp = {};
  asked.job.pp = 1;
  EXPECT_EQ(complaint(&Fixed::vpp, 2), "--vpp: interleaved needs --pp of at least 2");
}

TEST(Api, fixed_choices_that_no_plan_of_a_mixture_can_have_name_their_flag) {
  PlanRequest asked;
  asked.job = request("mixtral-8x22b", 64, 64, 4096);
  const auto complaint = [&](auto&& fix) {
    PlanRequest fixed = asked;
    fix(fixed.job);
    const auto found = orrery().plan(fixed);
    return found ? found->nothing_fits : found.error().text();
  };
  using Fixed = parallel::PartialPlan;
  using parallel::ScheduleKind;
  EXPECT_THAT(complaint([](Fixed& f) { f.ep = 3; }), HasSubstr("--ep: \"3\" does not divide the 8 experts"));
  EXPECT_THAT(complaint([](Fixed& f) { f.etp = 5; }), HasSubstr("--etp: \"5\" does not divide the 16384 FFN columns"));
  EXPECT_THAT(complaint([](Fixed& f) { f.cp = 3; }),
              HasSubstr("--cp: \"3\" does not split the sequence of 4096 tokens"));
  EXPECT_THAT(complaint([](Fixed& f) { f.shard = 7; }), HasSubstr("--shard: no plan of the search has shard 7"));
  EXPECT_THAT(complaint([](Fixed& f) { f.first_stage_layers = 500; }),
              HasSubstr("--first-stage-layers: no plan of the search has first-stage-layers 500"));
  const auto of_schedule = [&](ScheduleKind schedule, std::int64_t pp) {
    return complaint([&](Fixed& f) {
      f.schedule = schedule;
      f.pp = pp;
    });
  };
  EXPECT_EQ(of_schedule(ScheduleKind::zero_bubble, 1), "--schedule: zero-bubble needs --pp of at least 2");
  EXPECT_EQ(of_schedule(ScheduleKind::interleaved, 1), "--schedule: interleaved needs --pp of at least 2");
  EXPECT_THAT(complaint([](Fixed& f) {
                f.tp = 2;
                f.sequence_parallel = false;
              }),
              HasSubstr("--sequence-parallel: \"false\" is not valid with experts and tp 2"));
  EXPECT_THAT(complaint([](Fixed& f) {
                f.tp = 1;
                f.tp_overlap = parallel::TpOverlap::ring;
              }),
              HasSubstr("--tp-overlap: needs --sequence-parallel"));
}

// 8 nodes of 8: dispatch stays inside a node
TEST(Api, a_search_spreads_the_experts_of_a_mixture) {
  PlanRequest asked;
  asked.job = request("mixtral-8x7b", 64, 256, 4096);
  asked.explain = true;
  const auto found = orrery().plan(asked);
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_FALSE(found->best.empty());
  const auto& plan = found->best.front().plan;
  EXPECT_GT(plan.number("ep"), 1);
  EXPECT_LE(plan.number("ep") * plan.number("etp"), 8);
  EXPECT_LE(plan.number("tp"), 8);
  const auto& lines = found->explanation;
  const bool says_ep = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.starts_with("ep " + plan.text("ep") + ": ");
  });
  EXPECT_TRUE(says_ep);
}

TEST(Api, a_search_for_a_batch_of_requests_has_its_times) {
  PlanRequest asked;
  asked.job = request("llama-3.1-8b", 8, 1, 1);
  asked.job.global_batch = asked.job.seq = std::nullopt;
  asked.job.task = parallel::Task::inference;
  asked.job.prompt = 512;
  asked.job.generate = 32;
  asked.job.batch = 64;
  const auto found = orrery().plan(asked);
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_FALSE(found->best.empty());
  EXPECT_EQ(found->space.evaluated, found->space.points);
  for (const auto& best : found->best) {
    ASSERT_TRUE(best.inference);
    EXPECT_GT(best.inference->time_to_first_token, Seconds());
    EXPECT_GE(best.step_time, found->best.front().step_time);
  }
  EXPECT_THAT(found->not_searched, testing::ElementsAre("offload of weights (--offload)",
                                                        "uneven ends (--embedding-as-layer, --head-as-layer, "
                                                        "--first-stage-layers, --last-stage-layers)"));
  asked.job.zero = 1;
  const auto wrong = orrery().plan(asked);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text(), "--zero: is for training only; valid in inference: 0");
}

// The A100 clusters have host memory behind PCIe, so a search without fixed values lists every choice.
TEST(Api, a_search_lists_what_it_did_not_search) {
  PlanRequest asked;
  asked.job = request("llama-2-7b", 16, 64, 4096);
  const std::string ends =
      "uneven ends (--embedding-as-layer, --head-as-layer, --first-stage-layers, "
      "--last-stage-layers)";
  const std::string overlap = "tp-overlap (--tp-overlap)", sharding = "hybrid sharding (--shard)";
  const std::string offload = "offload of weights, activations, optimizer (--offload)";
  const std::string modules = "recompute of other modules (--recompute-modules)";
  const std::string some_layers = "recompute of some layers (--recompute-layers)";
  const std::string reduce = "dp-overlap (--dp-overlap)";
  const auto not_searched = [&](auto&& fix) {
    PlanRequest fixed = asked;
    fix(fixed.job);
    const auto found = orrery().plan(fixed);
    return found ? found->not_searched : std::vector<std::string>{found.error().text()};
  };
  using Fixed = parallel::PartialPlan;
  using testing::ElementsAre;
  // A sequence of 4,096 tokens is not split; see data/spaces/training.yaml.
  const std::string contexts = "cp above 1 (--cp)";
  EXPECT_THAT(not_searched([](Fixed&) {}), ElementsAre(contexts, "schedule zero-bubble, dualpipe, gpipe (--schedule)",
                                                       overlap, offload, sharding, ends, modules, some_layers, reduce));
  // Without stages there is no schedule and no end stages; without tp nothing to overlap.
  EXPECT_THAT(not_searched([](Fixed& f) { f.pp = f.tp = 1; }),
              ElementsAre(contexts, offload, sharding, modules, some_layers, reduce));
  EXPECT_THAT(not_searched([](Fixed& f) {
                f.cp = 1;
                f.schedule = parallel::ScheduleKind::gpipe;
                f.tp_overlap = parallel::TpOverlap::ring;
                f.offload = parallel::Offload{.weights = true};
                f.head_as_layer = true;
                f.recompute = parallel::Recompute::none;
                f.zero = 0;
                f.dp_overlap = true;
              }),
              testing::IsEmpty());
}

TEST(Api, devices_that_a_cluster_cannot_have_are_a_mistake_of_devices) {
  const auto answer = orrery().estimate(request("llama-2-7b", 12, 64, 4096));
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().text().starts_with("--devices: ")) << answer.error().text();
}

TEST(Api, a_job_that_no_plan_could_run_is_a_mistake_and_says_why) {
  PlanRequest asked;
  asked.job = request("gpt3-175b", 64, 64, 4096);
  const auto found = orrery().plan(asked);
  ASSERT_FALSE(found);
  EXPECT_FALSE(found.error().answer_is_no);
  EXPECT_EQ(found.error().text(), "--seq: \"4096\" is longer than the model's table of positions; valid: up to 2048");
}

TEST(Api, every_entry_that_is_listed_can_be_described) {
  for (const char* kind : {"models", "clusters", "accelerators", "stacks"}) {
    const auto entries = orrery().list(kind);
    ASSERT_TRUE(entries) << kind;
    EXPECT_FALSE(entries->empty()) << kind;
    for (const auto& entry : *entries) {
      const auto text = orrery().describe(entry.name);
      ASSERT_TRUE(text) << entry.name;
      EXPECT_THAT(*text, HasSubstr(entry.name));
    }
  }
  // All algorithms that `collective --algorithm` accepts.
  const auto listed = orrery().list("algorithms");
  ASSERT_TRUE(listed);
  std::vector<std::string> algorithms;
  for (const auto& entry : *listed) { algorithms.push_back(entry.name); }
  EXPECT_THAT(algorithms,
              testing::ElementsAre("auto", "ring", "tree", "direct", "in_switch", "flat_ring", "hierarchical"));
  const auto unknown = orrery().list("model");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text(), HasSubstr("\"models\""));
}

TEST(Api, validation_reads_the_tables_that_ship) {
  const auto validation = orrery().validate({}, {});
  ASSERT_TRUE(validation) << validation.error().text();
  EXPECT_GT(validation->overall.predicted, 0);
}

}  // namespace
}  // namespace orrery::api::orrery_test
