// Every complaint about a plan, word for word, and the quick answer against the long one.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::plan_test {
namespace {

using testing::ElementsAre;

// 12 layers, 16 heads of which 4 have keys and values, MLP 96 wide; 32 devices as tp 4 x pp 2 x dp 4; 64 sequences.
struct Example {
  workload::Model model = test::llama(12, 1024, 16, 4, 96, 4096);
  Job job{64, 512, hardware::Precision::bf16, Task::pretrain};
  Plan plan;
  std::int64_t devices = 32;

  Example() {
    plan.tp = 4;
    plan.pp = 2;
    plan.dp = 4;
    plan.micro_batch = 2;
  }
  [[nodiscard]] std::vector<std::string> complaints() const {
    std::vector<std::string> texts;
    for (const auto& problem : problems(model, job, plan, devices)) { texts.push_back(problem.text()); }
    EXPECT_EQ(is_valid(model, job, plan, devices), texts.empty());
    return texts;
  }
};

TEST(Plan, a_plan_that_fits_has_no_problems) {
  Example e;
  EXPECT_THAT(e.complaints(), ElementsAre());
  EXPECT_EQ(e.plan.devices(), 32);
  EXPECT_EQ(micro_batches(e.job, e.plan), 8);  // 64 / (4 x 2)
}

TEST(Plan, sizes_of_the_job_are_at_least_one) {
  Example e;
  e.job.global_batch = 0;
  e.job.seq = 0;
  EXPECT_THAT(e.complaints(), testing::Contains("--global-batch: \"0\" is too small; valid: 1 sequence or more"));
  EXPECT_THAT(e.complaints(), testing::Contains("--seq: \"0\" is too short; valid: 1 token or more"));
}

TEST(Plan, a_sequence_fits_the_table_of_learned_positions) {
  Example e;
  e.job.seq = 4096;
  e.model.position = workload::Position::learned;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.job.seq = 4100;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--seq: \"4100\" is longer than the model's table of positions; valid: up to 4096"));
  e.model.position = workload::Position::rotary;
  EXPECT_THAT(e.complaints(), ElementsAre());
}

TEST(Plan, degrees_are_at_least_one_and_zero_has_four_stages) {
  Example e;
  e.plan.tp = 0;
  e.plan.pp = -1;
  e.plan.dp = 0;
  e.plan.vpp = 0;
  e.plan.micro_batch = 0;
  e.plan.zero = 4;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--tp: \"0\" is too small; valid: 1 or more", "--pp: \"-1\" is too small; valid: 1 or more",
                          "--dp: \"0\" is too small; valid: 1 or more", "--vpp: \"0\" is too small; valid: 1 or more",
                          "--micro-batch: \"0\" is too small; valid: 1 or more",
                          "--zero: \"4\" is not a ZeRO stage; valid: 0, 1, 2, 3"));
}

TEST(Plan, degrees_multiply_to_the_devices) {
  Example e;
  e.plan.dp = 8;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--dp: tp 4 x pp 2 x dp 8 = 64 devices, but the cluster has 32; valid: dp 4"));
  e.devices = 36;
  EXPECT_THAT(e.complaints(), ElementsAre("--pp: tp 4 x pp 2 = 8 does not divide the 36 devices; nearest pp: 1 and 3"));
}

// 1e8 cubed is beyond 64 bits.
TEST(Plan, degrees_whose_product_overflows_are_too_many_devices_all_the_same) {
  Example e;
  e.plan.tp = e.plan.pp = e.plan.dp = 100'000'000;
  EXPECT_THAT(e.complaints(),
              testing::Contains("--tp: tp 100000000 does not divide the 32 devices; nearest divisors: 32"));
  e.plan.tp = e.plan.pp = 1;
  EXPECT_THAT(e.complaints(),
              testing::Contains("--dp: dp 100000000 = 100000000 devices, but the cluster has 32; valid: dp 32"));
}

TEST(Plan, tp_divides_heads_and_mlp_and_agrees_with_the_key_value_heads) {
  Example e;
  e.devices = 40;
  e.plan.tp = 5;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--tp: \"5\" does not divide the 16 attention heads; nearest divisors: 4 and 8",
                  "--tp: \"5\" does not divide the 96 columns of the MLP; nearest divisors: 4 and 6",
                  "--tp: \"5\" is neither a divisor nor a multiple of the 4 key-value heads; nearest divisors: 4"));
  e.devices = 64;
  e.plan.tp = 8;  // two ranks share a key-value head
  EXPECT_THAT(e.complaints(), ElementsAre());
}

// 16 heads on 6 ranks: 18, one key-value head per query head, because 4 do not divide 6. The MLP is not padded.
TEST(Plan, software_that_pads_heads_needs_no_tp_that_divides_them) {
  Example e;
  e.job.pads_heads = true;
  e.devices = 48;
  e.plan.tp = 6;
  EXPECT_THAT(e.complaints(), ElementsAre());
  EXPECT_EQ(padding_text(e.model, e.job, 6),
            "16 heads padded to 18 (+12.5 % of attention's work), 4 key-value heads replicated to 18");
  e.plan.cp = 2;  // 3 heads of a rank
  e.plan.cp_method = workload::ContextMethod::ulysses;
  e.devices = 96;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre(
          "--cp: \"2\" does not divide the 3 attention heads of a tensor-parallel rank; nearest divisors: 1 and 3",
          "--cp: \"2\" is neither a divisor nor a multiple of the 3 key-value heads of a tensor-parallel rank; "
          "nearest divisors: 1 and 3"));
  e.plan.cp = 1;
  e.plan.tp = 5;
  e.devices = 40;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--tp: \"5\" does not divide the 96 columns of the MLP; nearest divisors: 4 and 6"));
  EXPECT_EQ(padding_text(e.model, e.job, 8), "");  // two ranks share a key-value head, with padding or without
  e.job.pads_heads = false;
  EXPECT_EQ(padding_text(e.model, e.job, 6), "");
}

TEST(Plan, sequence_parallelism_splits_the_sequence_over_tp) {
  Example e;
  e.plan.sequence_parallel = true;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.job.seq = 510;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--sequence-parallel: tp 4 does not divide the sequence of 510 tokens; nearest divisors: 3 and 5"));
  e.plan.tp = 1;
  e.devices = 8;
  EXPECT_THAT(e.complaints(), ElementsAre("--sequence-parallel: needs --tp of at least 2"));
}

TEST(Plan, every_chunk_has_a_layer) {
  Example e;
  e.plan.schedule = ScheduleKind::interleaved;
  e.plan.vpp = 7;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--vpp: pp 2 x vpp 7 = 14 chunks, but the model has 12 layers; valid: vpp up to 6"));
  e.plan.vpp = 6;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.pp = 13;
  e.plan.vpp = 1;
  e.plan.schedule = ScheduleKind::one_f_one_b;
  e.devices = 208;
  EXPECT_THAT(e.complaints(), testing::Contains("--pp: \"13\" is more than the 12 layers of the model"));
}

TEST(Plan, interleaving_needs_chunks_stages_and_groups_of_micro_batches) {
  Example e;
  e.plan.vpp = 2;
  EXPECT_THAT(e.complaints(), ElementsAre("--vpp: \"2\" needs --schedule interleaved; other schedules: 1"));
  e.plan.schedule = ScheduleKind::interleaved;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.vpp = 1;
  EXPECT_THAT(e.complaints(), ElementsAre("--schedule: interleaved needs --vpp of at least 2"));
  e.plan.vpp = 2;
  e.plan.pp = 1;
  e.devices = 16;
  EXPECT_THAT(e.complaints(), ElementsAre("--schedule: interleaved needs --pp of at least 2"));
  e.plan.pp = 3;
  e.devices = 48;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre(
          "--vpp: interleaving needs a multiple of pp 3 as number of micro-batches; this plan has 8; nearest: 9"));
}

TEST(Plan, the_batch_is_shared_out_evenly) {
  Example e;
  e.job.global_batch = 3;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--global-batch: \"3\" is less than dp 4, and every replica needs a sequence; nearest: 4"));
  e.job.global_batch = 66;  // 64 and 68 are as near, and the larger one wins
  EXPECT_THAT(e.complaints(), ElementsAre("--global-batch: \"66\" is not a multiple of dp 4; nearest: 68"));
  e.job.global_batch = 64;
  e.plan.micro_batch = 7;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--micro-batch: \"7\" does not divide the 16 sequences of a replica; nearest divisors: 4 and 8"));
}

// 10^9 sequences and a micro-batch just above half of them: trying every size one by one would take seconds.
TEST(Plan, the_nearest_divisor_of_a_huge_batch_is_found_at_once) {
  Example e;
  e.job.global_batch = 4'000'000'000;
  e.plan.micro_batch = 500'000'001;
  EXPECT_THAT(e.complaints(), ElementsAre("--micro-batch: \"500000001\" does not divide the 1000000000 sequences of a "
                                          "replica; nearest divisors: 500000000 and 1000000000"));
}

TEST(Plan, a_sequence_is_cut_into_equal_parts_over_cp) {
  Example e;
  e.plan.cp = 2;
  e.devices = 64;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.cp = 3;
  e.devices = 96;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre(
          "--cp: \"3\" does not split the sequence of 512 tokens into 6 equal parts (two per rank); nearest: 2"));
  e.job.seq = 516;  // 6 x 86
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.sequence_parallel = true;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.job.seq = 510;  // 170 a rank
  EXPECT_THAT(e.complaints(), ElementsAre("--sequence-parallel: tp 4 does not divide the 170 tokens of a rank (510 / "
                                          "cp 3); nearest divisors: 2 and 5"));
  e.model.causal = false;
  e.plan.sequence_parallel = false;
  e.job.seq = 513;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.dp = 8;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--dp: tp 4 x cp 3 x pp 2 x dp 8 = 192 devices, but the cluster has 96; valid: dp 4"));
}

TEST(Plan, ulysses_cuts_the_heads_of_a_tensor_parallel_rank) {
  Example e;
  e.plan.cp_method = workload::ContextMethod::ulysses;
  e.plan.cp = 4;  // 16 / 4 heads, 4 / 4 key-value heads: copied
  e.devices = 128;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.cp = 8;
  e.devices = 256;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--cp: \"8\" does not divide the 4 attention heads of a tensor-parallel rank; nearest divisors: 4"));
  e.plan.tp = 1;
  e.plan.cp = 6;
  e.devices = 48;
  e.job.seq = 516;
  e.model.heads = 24;
  EXPECT_THAT(e.complaints(), ElementsAre("--cp: \"6\" is neither a divisor nor a multiple of the 4 key-value heads of "
                                          "a tensor-parallel rank; nearest divisors: 4"));
}

TEST(Plan, experts_are_shared_out_over_the_ranks_of_a_stage) {
  Example e;
  e.plan.ep = 8;
  EXPECT_THAT(e.complaints(), ElementsAre("--ep: \"8\" needs a model with experts; valid for this model: 1"));
  e.model.experts = {.count = 8, .active = 2, .ffn = 96};
  EXPECT_THAT(e.complaints(), ElementsAre("--sequence-parallel: \"false\" is not valid with experts and tp 4: each "
                                          "rank sends its own tokens; valid: \"true\""));
  e.plan.sequence_parallel = true;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.model.ffn = 97;  // no layer has a dense MLP
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.ep = 3;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--ep: \"3\" does not divide the 8 experts; nearest divisors: 2 and 4",
                  "--ep: \"3\" does not divide the 16 ranks of a stage (tp x cp x dp); nearest valid: 2 and 4"));
  e.plan.ep = 8;
  e.plan.etp = 4;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--ep: \"8\" does not divide 4 = ranks of a stage (tp x cp x dp) / etp 4; nearest valid: 4"));
  e.plan.etp = 5;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--etp: \"5\" does not divide the 96 FFN columns of an expert; nearest divisors: 4 and 6",
                  "--etp: \"5\" does not divide the 16 ranks of a stage (tp x cp x dp); nearest valid: 4 and 8"));
  e.plan.etp = 1;
  e.model.experts.shared_ffn = 98;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--tp: \"4\" does not divide the 98 FFN columns of the shared experts; nearest divisors: 2 and 7"));
}

TEST(Plan, overlapped_products_need_sequence_parallelism) {
  Example e;
  e.plan.tp_overlap = TpOverlap::ring;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre(
          "--tp-overlap: needs --sequence-parallel: all-reduces are not split into chunks; valid without it: none"));
  e.plan.sequence_parallel = true;
  EXPECT_THAT(e.complaints(), ElementsAre());
}

TEST(Plan, recompute_of_some_layers_needs_recompute) {
  Example e;
  e.plan.recompute_layers = 2;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--recompute-layers: needs --recompute selective or full; without recompute, 0"));
  e.plan.recompute = Recompute::selective;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.recompute_layers = 1000;  // all of every chunk
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.recompute_layers = -1;
  EXPECT_THAT(e.complaints(), ElementsAre("--recompute-layers: \"-1\" is negative; valid: 0 (the default) or more"));
}

TEST(Plan, schedules_that_split_backward_have_shapes_of_their_own) {
  Example e;
  e.plan.schedule = ScheduleKind::zero_bubble;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.vpp = 2;
  EXPECT_THAT(e.complaints(), ElementsAre("--vpp: \"2\" needs --schedule interleaved; other schedules: 1"));
  e.plan.vpp = 1;
  e.plan.schedule = ScheduleKind::dualpipe;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.job.global_batch = 72;  // 9 micro-batches
  EXPECT_THAT(e.complaints(), ElementsAre("--schedule: dualpipe needs an even number of micro-batches, at least 2 x pp "
                                          "= 4; this plan has 9; nearest: 10"));
  e.job.global_batch = 16;
  EXPECT_THAT(e.complaints(), ElementsAre("--schedule: dualpipe needs an even number of micro-batches, at least 2 x pp "
                                          "= 4; this plan has 2; nearest: 4"));
  e.job.global_batch = 64;
  e.plan.pp = 1;
  e.devices = 16;
  EXPECT_THAT(e.complaints(), ElementsAre("--schedule: dualpipe needs an even --pp, not 1; nearest: 2"));
  e.plan.schedule = ScheduleKind::zero_bubble;
  EXPECT_THAT(e.complaints(), ElementsAre("--schedule: zero-bubble needs --pp of at least 2"));
}

TEST(Plan, hybrid_sharding_divides_the_replicas_of_something_sharded) {
  Example e;
  e.plan.shard = 2;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--shard: \"2\" needs --zero of at least 1; with --zero 0, nothing is sharded"));
  e.plan.zero = 3;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.shard = 3;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--shard: \"3\" does not divide the 4 replicas (cp x dp); nearest divisors: 2 and 4"));
  e.plan.shard = -1;
  EXPECT_THAT(e.complaints(), ElementsAre("--shard: \"-1\" is negative; valid: 0 (the default) or more"));
}

TEST(Plan, the_ends_leave_a_layer_to_every_other_chunk) {
  Example e;
  e.plan.first_stage_layers = 5;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.last_stage_layers = 8;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--first-stage-layers: \"5\" leaves 0 of 12 layers to 0 other chunks; valid: 4"));
  e.plan.last_stage_layers = 0;
  e.plan.first_stage_layers = 12;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--first-stage-layers: \"12\" leaves 0 of 12 layers to 1 other chunks; valid: up to 11"));
  e.plan.first_stage_layers = 4;
  e.plan.head_as_layer = true;
  EXPECT_THAT(e.complaints(), ElementsAre("--first-stage-layers: is not valid with --embedding-as-layer or "
                                          "--head-as-layer, which distribute layers evenly"));
  e.plan.head_as_layer = false;
  e.plan.schedule = ScheduleKind::interleaved;
  e.plan.vpp = 3;
  EXPECT_THAT(e.complaints(),
              ElementsAre("--first-stage-layers: \"4\" does not split into vpp 3 equal chunks; nearest: 3"));
}

TEST(Plan, the_second_tier_is_there_when_something_is_offloaded) {
  hardware::Cluster cluster = test::cluster_of({8});
  cluster.second_tier = {};
  Plan plan;
  EXPECT_TRUE(is_valid(cluster, plan));
  plan.offload.weights = true;
  EXPECT_FALSE(is_valid(cluster, plan));
  ASSERT_EQ(problems(cluster, plan).size(), 1U);
  EXPECT_EQ(problems(cluster, plan).front().text(),
            "--offload: needs a second memory tier; cluster \"plain\" has none (second_tier.memory, .bandwidth)");
  cluster.second_tier = {64_GiB, 32_GBps, 10_us};
  EXPECT_TRUE(is_valid(cluster, plan));
  EXPECT_TRUE(problems(cluster, plan).empty());
}

TEST(Plan, inference_leaves_alone_what_is_for_training) {
  Example e;
  e.job.task = Task::inference;
  EXPECT_THAT(e.complaints(), ElementsAre("--prompt: \"0\" is too short; valid: 1 token or more",
                                          "--generate: \"0\" is too few; valid: 1 token or more"));
  e.job.prompt = 384;
  e.job.generate = 128;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.offload.weights = true;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.plan.zero = 1;
  e.plan.cp = 2;
  e.devices = 64;
  e.plan.recompute = Recompute::full;
  e.plan.offload.optimizer = true;
  e.plan.schedule = ScheduleKind::zero_bubble;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre(
          "--zero: is for training only; valid in inference: 0",
          "--recompute: is for training only; valid in inference: none",
          "--cp: is for training only; valid in inference: 1",
          "--offload: is for training only; valid in inference: weights or nothing",
          "--schedule: is for training only; valid in inference: 1f1b or gpipe (identical without a backward pass)"));
}

TEST(Plan, adapters_are_narrower_than_what_they_adapt_and_merged_for_inference) {
  Example e;
  e.job.adapter.rank = 16;
  EXPECT_THAT(e.complaints(), ElementsAre());
  e.job.adapter.rank = 1025;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre(
          "--lora: \"1025\" is not a rank of the model's matrices; valid: 0 (no adapter) to 1024, their width"));
  e.job.adapter.rank = 16;
  e.job.task = Task::inference;
  e.job.prompt = e.job.generate = 8;
  EXPECT_THAT(
      e.complaints(),
      ElementsAre("--lora: \"16\" is for training only; in inference, adapters are merged into the weights: 0"));
}

RC_GTEST_PROP(Plan, is_valid_says_whether_problems_finds_any, ()) {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  test::Case c = test::any_case(draw);
  RC_ASSERT(is_valid(c.model, c.job, c.plan, c.cluster.devices));
  if (test::any_flag(draw)) { c = test::any_inference_case(draw); }
  std::int64_t* const fields[] = {&c.plan.tp,    &c.plan.cp,          &c.plan.pp,           &c.plan.dp,
                                  &c.plan.ep,    &c.plan.etp,         &c.plan.vpp,          &c.plan.micro_batch,
                                  &c.plan.shard, &c.job.global_batch, &c.model.layers,      &c.model.heads,
                                  &c.job.seq,    &c.cluster.devices,  &c.model.experts.ffn, &c.plan.first_stage_layers,
                                  &c.job.prompt, &c.job.generate,     &c.model.kv_heads,    &c.plan.last_stage_layers};
  const std::int64_t changes = draw(0, 4);
  for (std::int64_t i = 0; i < changes; ++i) { *fields[draw(0, std::size(fields))] = draw(1, 13); }
  if (test::any_flag(draw)) { c.plan.schedule = static_cast<ScheduleKind>(draw(0, 5)); }
  if (test::any_flag(draw)) { c.plan.tp_overlap = static_cast<TpOverlap>(draw(0, 3)); }
  const bool valid = is_valid(c.model, c.job, c.plan, c.cluster.devices);
  RC_ASSERT(valid == problems(c.model, c.job, c.plan, c.cluster.devices).empty());
  RC_CLASSIFY(valid, "valid");
}

}  // namespace
}  // namespace orrery::parallel::plan_test
