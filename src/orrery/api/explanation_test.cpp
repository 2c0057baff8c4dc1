// Sentences from numbers made by hand.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/explanation.hpp"
#include "orrery/core/error.hpp"

namespace orrery::api::explanation_test {
namespace {

using testing::ElementsAre;

results::PlanSummary plan() {
  const std::int64_t one = 1, none = 0;
  results::PlanSummary plan;
  plan.values = {{"tp", one},
                 {"cp", one},
                 {"pp", one},
                 {"ep", one},
                 {"etp", one},
                 {"dp", one},
                 {"vpp", one},
                 {"micro_batch", one},
                 {"zero", none},
                 {"recompute", "none"},
                 {"schedule", "1f1b"},
                 {"sequence_parallel", false},
                 {"tp_overlap", "none"},
                 {"cp_method", "ring"},
                 {"dp_overlap", false},
                 {"shard", none},
                 {"offload", ""},
                 {"placement", ""},
                 {"micro_batches", one, false, true}};
  return plan;
}

// 10 s: 6 compute, 2 exposed, 1.5 bubble, 0.5 host. 60 of 75 GiB, most of it activations.
results::Estimate made() {
  results::Estimate e;
  e.step_time = 10_s;
  e.breakdown.compute = 6_s;
  e.breakdown.exposed_comm = 2_s;
  e.breakdown.bubble = 1.5_s;
  e.breakdown.host = 0.5_s;
  e.comm_by_group = {{"tp", 3_s, 1.5_s}, {"dp", Seconds(), Seconds()}, {"pp", 1_s, 0.5_s}};
  e.memory.weights = e.memory.gradients = 8_GiB;
  e.memory.optimizer = 4_GiB;
  e.memory.activations = 38_GiB;
  e.memory.buffers = 2_GiB;
  e.memory.capacity = 75_GiB;
  e.memory.stage = 3;
  e.plan = plan();
  e.plan.set("tp", std::int64_t{4});
  e.plan.set("micro_batch", std::int64_t{2});
  e.plan.set("recompute", std::string("none"));
  e.plan.set("schedule", std::string("1f1b"));
  return e;
}

TEST(Explanation, names_where_time_and_memory_go_largest_first) {
  EXPECT_THAT(explanation({made()}, {}),
              ElementsAre("step: compute 60.0 %, exposed communication 20.0 %, pipeline bubble 15.0 %, host 5.0 %",
                          "memory: 60.0 GiB of 75.0 GiB on stage 3 (80.0 %), most of it activations (38.0 GiB); "
                          "memory is not the limit",
                          "communication: tp 3.00 s of which 1.50 s exposed; pp 1.00 s of which 500 ms exposed"));
}

TEST(Explanation, memory_binds_above_nine_tenths) {
  auto tight = made();
  tight.memory.capacity = 66_GiB;
  EXPECT_THAT(explanation({tight}, {})[1], testing::HasSubstr("(90.9 %)"));
  EXPECT_THAT(explanation({tight}, {})[1], testing::HasSubstr("memory is almost full"));
}

TEST(Explanation, says_how_the_runner_up_differs_and_what_it_loses_on) {
  auto other = made();
  other.plan.set("micro_batch", std::int64_t{1});
  other.plan.set("zero", std::int64_t{1});
  other.plan.set("recompute", std::string("full"));
  other.plan.set("sequence_parallel", true);
  other.step_time = 11_s;
  other.breakdown.recompute = 1.25_s;
  other.breakdown.bubble = 1.25_s;
  EXPECT_EQ(explanation({made(), other}, {})[3],
            "runner-up (micro-batch 1 instead of 2, zero 1 instead of 0, recompute full instead of none, with sequence "
            "parallelism) is 10.0 % slower: recompute +1.25 s, pipeline bubble -250 ms");
}

// 16 sequences in 10 s against 8 in 6 s, which are 16 in 12 s: 1 s of bubble is 2 s.
TEST(Explanation, compares_for_as_many_sequences_where_batches_differ) {
  auto best = made(), other = made();
  best.global_batch = 16;
  other.global_batch = 8;
  other.plan.set("dp", std::int64_t{2});
  other.step_time = 6_s;
  other.breakdown.compute = 3_s;
  other.breakdown.exposed_comm = 1_s;
  other.comm_by_group = {{"tp", 1_s, 0.75_s}, {"pp", 1_s, 0.25_s}};
  other.breakdown.bubble = 1.75_s;
  other.breakdown.host = 0.25_s;
  EXPECT_EQ(explanation({best, other}, {})[3],
            "runner-up (dp 2 instead of 1) is 20.0 % slower: pipeline bubble +2.00 s");
}

TEST(Explanation, names_what_replicas_the_second_tier_and_the_network_have_to_do_with_it) {
  auto best = made(), other = made();
  best.plan.set("dp", std::int64_t{2});
  other.plan.set("dp", std::int64_t{2});
  best.plan.set("dp_overlap", true);
  other.plan.set("shard", std::int64_t{4});
  other.plan.set("offload", std::string("weights"));
  other.plan.set("placement", std::string("tp=0 dp=1"));
  EXPECT_EQ(explanation({best, other}, {})[3],
            "runner-up (dp-overlap off instead of on, shard 4 instead of 0, offload weights instead of none, placement "
            "tp=0 dp=1 instead of by rank) is 0.0 % slower: no significant difference");
  EXPECT_THAT(explanation({best}, {{"placement", other, {}, true}})[3],
              testing::StartsWith("placement by rank: tp=0 dp=1 (with dp-overlap off"));
}

TEST(Explanation, no_communication_and_an_equal_runner_up_have_words_too) {
  auto alone = made();
  alone.comm_by_group.clear();
  const auto lines = explanation({alone, alone}, {});
  EXPECT_EQ(lines[2], "communication: none");
  EXPECT_EQ(lines[3], "runner-up (the same plan) is 0.0 % slower: no significant difference");
}

// ep 8 of the winner: with 4 the reduction of experts' gradients takes 1 s longer, with 16 the exchange of tokens does.
TEST(Explanation, says_by_axis_what_the_next_values_would_cost) {
  auto best = made();
  best.plan.set("ep", std::int64_t{8});
  best.breakdown.exposed_comm = 2_s;
  best.comm_by_group = {{"ep", 3_s, 1.5_s}, {"dp", 1_s, 0.5_s}};
  auto fewer = best, more = best, larger = best, zero_bubble = best;
  fewer.plan.set("ep", std::int64_t{4});
  fewer.step_time = 11_s;
  fewer.breakdown.exposed_comm = 3_s;
  fewer.comm_by_group[1].exposed = 1.5_s;
  more.plan.set("ep", std::int64_t{16});
  more.step_time = 10.5_s;
  more.breakdown.exposed_comm = 2.5_s;
  more.comm_by_group[0].exposed = 2_s;
  larger.plan.set("micro_batch", std::int64_t{4});
  larger.step_time = 9_s;
  larger.breakdown.compute = 5_s;
  larger.memory.activations = 78_GiB;
  larger.feasible = false;
  zero_bubble.plan.set("schedule", std::string("zero-bubble"));
  zero_bubble.step_time = 9.5_s;
  zero_bubble.breakdown.bubble = 1_s;
  const auto lines = explanation({best}, {{"ep", fewer, {}, true},
                                          {"ep", more, {}, true},
                                          {"micro-batch", larger, {}, true},
                                          {"schedule", zero_bubble, {}, false}});
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_THAT(lines[1], testing::HasSubstr("memory is the limit: micro-batch 4 would be faster but does not fit"));
  EXPECT_EQ(lines[3],
            "ep 8: 4 would be 10.0 % slower (exposed dp communication +1.00 s); 16 would be 5.0 % slower (exposed ep "
            "communication +500 ms)");
  EXPECT_EQ(lines[4], "micro-batch 2: 4 would be 10.0 % faster (compute -1.00 s), but needs 100 GiB");
  EXPECT_EQ(lines[5],
            "schedule 1f1b: zero-bubble would be 5.0 % faster (pipeline bubble -500 ms); it is searched only if "
            "--schedule sets it");
}

TEST(Explanation, memory_is_no_limit_if_every_faster_neighbour_fits) {
  auto slower = made();
  slower.plan.set("zero", std::int64_t{0});
  slower.step_time = 12_s;
  slower.feasible = false;
  EXPECT_THAT(explanation({made()}, {{"zero", slower, {}, true}})[1], testing::HasSubstr("memory is not the limit"));
}

// pp 2 of the winner's micro-batch does not fit; with 1 it does, and is slower.
TEST(Explanation, names_choices_that_follow_and_plans_that_do_not_fit) {
  auto best = made(), fits = made();
  best.plan.set("pp", std::int64_t{1});
  fits.plan.set("pp", std::int64_t{2});
  fits.plan.set("micro_batch", std::int64_t{1});
  fits.plan.set("vpp", std::int64_t{4});
  fits.plan.set("schedule", std::string("interleaved"));
  fits.step_time = 11_s;
  fits.breakdown.bubble = 2.5_s;
  auto faster = fits;
  faster.plan.set("micro_batch", std::int64_t{2});
  faster.step_time = 9_s;
  faster.feasible = false;
  const auto lines = explanation({best}, {{"pp", fits, faster, true}});
  EXPECT_THAT(lines[1], testing::EndsWith("memory is the limit: pp 2 (with vpp 4) would be faster but does not fit"));
  EXPECT_EQ(lines[3], "pp 1: 2 (with vpp 4, micro-batch 1) would be 10.0 % slower (pipeline bubble +1.00 s)");
}

TEST(Explanation, of_a_schedule_that_does_not_fit_mentions_its_other_plans) {
  auto best = made(), dual = made();
  best.plan.set("vpp", std::int64_t{2});
  dual.plan.set("schedule", std::string("dualpipe"));
  dual.feasible = false;
  EXPECT_EQ(explanation({best}, {{"schedule", dual, {}, false}})[3],
            "schedule 1f1b: dualpipe would take the same time, but needs 60.0 GiB (other plans with this schedule may "
            "fit: --schedule dualpipe)");
}

// 11 s against 10 s: 1.25 s of recompute more, 0.25 s of bubble less. 38 GiB of activations become 8 GiB, weights and
// gradients of 8 GiB each stay.
TEST(Explanation, of_two_plans_has_choices_time_and_memory) {
  auto other = made();
  other.plan.set("recompute", std::string("full"));
  other.step_time = 11_s;
  other.breakdown.recompute = 1.25_s;
  other.breakdown.bubble = 1.25_s;
  other.memory.activations = 8_GiB;
  EXPECT_THAT(difference(other, made()),
              ElementsAre("plan: recompute full instead of none",
                          "step: 10.0 % slower: recompute +1.25 s, pipeline bubble -250 ms",
                          "memory: 30.0 GiB instead of 60.0 GiB of 75.0 GiB: activations -30.0 GiB"));
  EXPECT_THAT(difference(made(), other)[1], testing::StartsWith("step: 9.1 % faster: recompute -1.25 s"));
  EXPECT_THAT(difference(made(), made()),
              ElementsAre("plan: the same plan", "step: the same time: no significant difference",
                          "memory: 60.0 GiB as well of 75.0 GiB"));
}

// 6 s on twice the devices instead of 10 s: at a price per device and second 1.2 times the cost.
TEST(Explanation, of_plans_on_other_numbers_of_devices_has_the_cost) {
  auto one = made(), other = made();
  one.devices = 8;
  other.devices = 16;
  other.plan.set("dp", std::int64_t{2});
  other.step_time = 6_s;
  one.cost = results::Expense{10.0, ""};
  other.cost = results::Expense{12.0, ""};
  const auto lines = difference(other, one);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "plan: 16 devices instead of 8, dp 2 instead of 1");
  EXPECT_EQ(lines[3], "cost per step: 20.0 % higher");
}

// The runner-up of a search is described as any other plan is.
TEST(Explanation, of_two_plans_says_what_the_search_says_of_its_runner_up) {
  auto other = made();
  other.plan.set("micro_batch", std::int64_t{1});
  other.step_time = 11_s;
  other.breakdown.recompute = 1.25_s;
  other.breakdown.bubble = 1.25_s;
  const auto lines = difference(other, made());
  EXPECT_EQ(explanation({made(), other}, {})[3],
            "runner-up (micro-batch 1 instead of 2) is 10.0 % slower: recompute +1.25 s, pipeline bubble -250 ms");
  EXPECT_EQ(lines[0], "plan: micro-batch 1 instead of 2");
  EXPECT_EQ(lines[1], "step: 10.0 % slower: recompute +1.25 s, pipeline bubble -250 ms");
}

TEST(Explanation, of_no_answer_breaks_the_contract) { EXPECT_THROW((void)explanation({}, {}), InternalError); }

}  // namespace
}  // namespace orrery::api::explanation_test
