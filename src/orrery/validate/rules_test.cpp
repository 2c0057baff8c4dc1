// Each rule from a row to a job, a plan and a stack; reasons to skip.
#include "orrery/validate/rules.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/validate/facts.hpp"
#include "orrery/validate/rules_samples.hpp"

std::string orrery::validate::samples::data_directory() { return ORRERY_SOURCE_DATA_DIR; }

namespace orrery::validate::rules_test {
namespace {

using hardware::Precision;
using parallel::Recompute;
using parallel::ScheduleKind;
using testing::HasSubstr;
using namespace samples;

TEST(Rules, the_family_chooses_the_stack) {
  EXPECT_EQ(stack_of("vtrain_multi").stack, "megatron-deepspeed");
  EXPECT_EQ(stack_of("vtrain_single").stack, "megatron-deepspeed");
  EXPECT_EQ(stack_of("megatron_seqsel").stack, "megatron-2021");
  EXPECT_EQ(stack_of("mosaic_mpt").stack, "fsdp");
  EXPECT_EQ(stack_of("megatron_h100").stack, "megatron-core");
  EXPECT_EQ(stack_of("unheard of").stack, "megatron-core");
  EXPECT_EQ(scenario(whole_row()).stack->name, "megatron-deepspeed");
}

TEST(Rules, stated_plans_are_taken_as_stated) {
  TrainingRow row = whole_row();
  row.dp = 4;
  row.vpp = 2;
  row.zero = 1;
  row.sp = "yes";
  row.recompute = "selective";
  const parallel::Plan plan = scenario(row).plan;
  EXPECT_EQ(plan.tp, 2);
  EXPECT_EQ(plan.pp, 2);
  EXPECT_EQ(plan.dp, 4);
  EXPECT_EQ(plan.vpp, 2);
  EXPECT_EQ(plan.schedule, ScheduleKind::interleaved);
  EXPECT_EQ(plan.micro_batch, 2);
  EXPECT_EQ(plan.zero, 1);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_EQ(plan.recompute, Recompute::selective);
  EXPECT_FALSE(plan.dp_overlap);  // the default of megatron-deepspeed
}

TEST(Rules, blank_degrees_are_one_and_dp_takes_the_rest) {
  TrainingRow row = whole_row();
  row.tp.reset();
  row.pp.reset();
  const parallel::Plan plan = scenario(row).plan;
  EXPECT_EQ(plan.tp, 1);
  EXPECT_EQ(plan.pp, 1);
  EXPECT_EQ(plan.dp, 16);
  EXPECT_EQ(plan.vpp, 1);
  EXPECT_EQ(plan.schedule, ScheduleKind::one_f_one_b);
}

TEST(Rules, blank_sharding_and_sequence_parallelism_are_defaults_of_the_stack) {
  TrainingRow row = whole_row();
  row.zero.reset();
  row.sp = "";
  EXPECT_EQ(scenario(row).plan.zero, 0);
  EXPECT_FALSE(scenario(row).plan.sequence_parallel);
  row.family = "mlperf_gpt3";
  EXPECT_EQ(scenario(row).plan.zero, 1);
  EXPECT_TRUE(scenario(row).plan.sequence_parallel);
  row.tp = 1;
  EXPECT_FALSE(scenario(row).plan.sequence_parallel);
  row.family = "mosaic_mpt";
  EXPECT_EQ(scenario(row).plan.zero, 3);
}

TEST(Rules, what_has_no_effect_is_off) {
  TrainingRow row = whole_row();
  row.tp = 1;
  row.pp = 1;
  row.sp = "yes";
  row.vpp = 4;
  EXPECT_FALSE(scenario(row).plan.sequence_parallel);
  EXPECT_EQ(scenario(row).plan.vpp, 1);
}

// Recompute that a row does not state applies to as few layers of each chunk as fit in memory.
TEST(Rules, blank_recompute_applies_to_as_few_layers_as_fit) {
  TrainingRow row = whole_row();
  row.family = "of_megatron_core";  // whose recipes do not recompute all layers
  row.recompute = "";
  row.hidden = 8192;
  row.heads = 64;
  row.global_batch = 256;
  int found = 0;
  for (const std::int64_t micro_batch : {1, 2, 4, 8, 16, 32, 64}) {
    row.micro_batch = micro_batch;
    const Scenario least = scenario(row);
    const std::int64_t layers = least.plan.recompute_layers;
    if (least.plan.recompute != Recompute::full || layers <= 1 || layers == 4) { continue; }
    estimate::Estimator estimator(least.model, least.cluster, *least.stack, least.job);
    EXPECT_TRUE(estimator.memory(least.plan).fits);
    parallel::Plan fewer = least.plan;
    fewer.recompute_layers = layers - 1;
    EXPECT_FALSE(estimator.memory(fewer).fits);
    ++found;
  }
  EXPECT_GT(found, 0);
}

// What `estimate` makes of flags for every choice of a plan.
parallel::Plan estimated_plan(const Scenario& scenario) {
  estimate::Request request;
  request.global_batch = scenario.job.global_batch;
  request.seq = scenario.job.seq;
  for (const auto& choice : parallel::plan_choices()) {
    for (const auto& part : choice.parts) {
      if (!choice.of_recommenders) { part.give(request, part.get(scenario.plan)); }
    }
  }
  const auto settled = estimate::resolve(request, scenario.model, scenario.cluster, *scenario.stack);
  EXPECT_TRUE(settled) << settled.error().text();
  return settled ? settled->plan : parallel::Plan{};
}

// Of rows that state their recompute, and of rows that leave it to the rule.
TEST(Rules, plans_of_rows_are_plans_that_flags_of_estimate_give) {
  TrainingRow row = whole_row();
  row.hidden = 8192;
  row.heads = 64;
  row.global_batch = 256;
  bool some_layers = false;
  for (const char* family : {"of_megatron_core", "vtrain_multi", "megatron_seqsel", "mosaic_mpt"}) {
    for (const char* recompute : {"", "full", "selective", "no"}) {
      for (const std::int64_t micro_batch : {1, 4, 16, 64}) {
        row.family = family;
        row.recompute = recompute;
        row.micro_batch = micro_batch;
        const Scenario made = scenario(row);
        EXPECT_TRUE(estimated_plan(made) == made.plan) << family << ", " << recompute << ", " << micro_batch;
        some_layers = some_layers || made.plan.recompute_layers > 0;
      }
    }
  }
  EXPECT_TRUE(some_layers);
}

// A model of a few MB fits whatever is chosen: nothing is recomputed and the micro-batch is the largest divisor of a
// replica's sequences, or one where there are stages.
TEST(Rules, blank_recompute_and_micro_batch_are_the_least_and_the_largest_that_fit) {
  TrainingRow row = whole_row();
  row.recompute = "";
  row.micro_batch.reset();
  row.seq = 128;
  row.pp = 1;
  EXPECT_EQ(scenario(row).plan.recompute, Recompute::none);
  EXPECT_EQ(scenario(row).plan.micro_batch, 4);  // of a replica's 32 / 8
  row.pp = 2;
  EXPECT_EQ(scenario(row).plan.micro_batch, 1);
}

// arXiv 2407.21783 section 3.3.2: 126 layers, embedding and head are 8 chunks of one layer on each of 16 stages.
TEST(Rules, llama_3_405b_is_the_plan_of_its_paper) {
  TrainingRow row;
  row.family = "llama3_405b";
  row.model = "Llama3-405B";
  row.layers = 126;
  row.hidden = 16384;
  row.heads = 128;
  row.kv_heads = 8;
  row.ffn = 53248;
  row.seq = 8192;
  row.precision = "bf16";
  row.gpu_type = "H100-SXM";
  row.gpus = 16384;
  row.tp = 8;
  row.pp = 16;
  row.global_batch = 2048;
  const Scenario made = scenario(row);
  EXPECT_EQ(made.stack->name, "llama3");
  EXPECT_EQ(made.taken_as, "");
  EXPECT_EQ(made.plan.vpp, 8);
  EXPECT_EQ(made.plan.zero, 2);
  EXPECT_TRUE(made.plan.embedding_as_layer && made.plan.head_as_layer && made.plan.sequence_parallel);
  EXPECT_EQ(made.plan.recompute, Recompute::none);
  EXPECT_FALSE(parallel::reduces_every_micro_batch(made.plan, *made.stack));
}

// torchtitan does not reshard weights after forward where there are pipeline stages.
TEST(Rules, torchtitan_gathers_weights_once_a_step_with_stages) {
  TrainingRow row = whole_row();
  row.family = "torchtitan";
  row.zero = 3;
  row.pp = 1;
  EXPECT_EQ(scenario(row).plan.zero, 3);
  row.pp = 2;
  EXPECT_EQ(scenario(row).plan.zero, 2);
}

// torchtitan's "local batch size" of 8 on 2 stages is 2 micro-batches of 4; without stages it is one of 8.
TEST(Rules, some_tables_state_what_is_cut_into_micro_batches) {
  TrainingRow row = whole_row();
  row.micro_batch = 8;
  EXPECT_EQ(scenario(row).plan.micro_batch, 8);
  row.family = "torchtitan";
  EXPECT_EQ(scenario(row).plan.micro_batch, 4);
  row.pp = 1;
  row.global_batch = 64;
  EXPECT_EQ(scenario(row).plan.micro_batch, 8);
}

TEST(Rules, adapters_are_a_fine_tuning_of_frozen_weights) {
  TrainingRow row = whole_row();
  EXPECT_EQ(scenario(row).job.task, parallel::Task::pretrain);
  row.lora = 0;
  EXPECT_EQ(scenario(row).job.task, parallel::Task::pretrain);
  row.lora = 16;
  row.family = "mlperf_llama2_70b_lora";
  EXPECT_EQ(scenario(row).job.task, parallel::Task::finetune);
  EXPECT_EQ(scenario(row).job.adapter, (workload::Adapter{16, workload::Adapter::Targets::attention}));
  row.family = "automodel_dense";
  EXPECT_EQ(scenario(row).job.adapter.targets, workload::Adapter::Targets::all);
}

TEST(Rules, context_parallelism_takes_its_part_of_the_devices) {
  TrainingRow row = whole_row();
  row.cp = 2;
  const Scenario s = scenario(row);
  EXPECT_EQ(s.plan.cp, 2);
  EXPECT_EQ(s.plan.dp, 2);  // 16 / (tp 2 x cp 2 x pp 2)
  EXPECT_EQ(s.plan.cp_method, workload::ContextMethod::ring);
  row.cp = 3;
  EXPECT_EQ(reason(row), "tp 2 x cp 3 x pp 2 do not divide 16 gpus");
}

TEST(Rules, a_tpu_runs_what_xla_compiles_fully_sharded) {
  TrainingRow row = whole_row();
  row.family = "mlperf_gpt3";
  row.precision = "";
  row.gpu_type = "TPU-v5p";
  row.gpus_per_node = 4;
  row.zero.reset();
  row.gpus = 64;
  const Scenario s = scenario(row);
  EXPECT_EQ(s.stack->name, "maxtext");
  EXPECT_EQ(s.plan.zero, 3);
  EXPECT_EQ(s.job.precision, Precision::bf16);
}

TEST(Rules, what_is_not_built_is_skipped) {
  TrainingRow row = whole_row();
  row.gpu_type = "TPU-v7";
  EXPECT_EQ(reason(row), "no accelerator \"TPU-v7\" in the catalogue");
  row.model = "DLRM-A3";
  EXPECT_EQ(reason(row), "recommender without published embedding tables");
  row.model = "Nemotron_3_Nano";
  EXPECT_THAT(reason(row), HasSubstr("Mamba"));
  row.model = "Nemotron-340B";
  row.gpu_type = "A100-80GB";
  EXPECT_EQ(scenario(row).model.activation, workload::Activation::relu);
}

TEST(Rules, a_batch_of_requests) {
  const Scenario s = scenario(batch_row());
  EXPECT_EQ(s.job.task, parallel::Task::inference);
  EXPECT_EQ(s.job.prompt, 128);
  EXPECT_EQ(s.job.generate, 8);
  EXPECT_EQ(s.job.global_batch, 16);
  EXPECT_EQ(s.job.precision, Precision::fp16);
  EXPECT_EQ(s.model.max_seq, 136);
  EXPECT_EQ(s.plan.tp, 8);
  EXPECT_EQ(s.plan.dp, 1);
  EXPECT_EQ(s.plan.zero, 0);
}

TEST(Rules, weights_of_inference_are_stored_as_the_row_says) {
  InferenceRow row = batch_row();
  EXPECT_EQ(scenario(row).job.formats.weights, std::nullopt);
  row.precision = "w4a16";
  EXPECT_EQ(scenario(row).job.formats.weights, hardware::StorageFormat::int4);
  EXPECT_EQ(scenario(row).job.precision, Precision::bf16);
  row.precision = "fp8";  // A100 has no units for it
  EXPECT_EQ(scenario(row).job.formats.weights, hardware::StorageFormat::fp8);
  EXPECT_EQ(scenario(row).taken_as, "precision fp8 -> bf16");
  row.precision = "w8a8";
  EXPECT_EQ(scenario(row).job.formats.weights, std::nullopt);
  EXPECT_EQ(scenario(row).job.precision, Precision::int8);
}

TEST(Rules, int8_products_of_training_are_skipped) {
  TrainingRow row = whole_row();
  row.precision = "int8";
  EXPECT_EQ(reason(row), "precision: int8 is a format of inference only");
}

TEST(Rules, requests_in_flight_that_are_not_stated_are_skipped) {
  InferenceRow row = batch_row();
  row.mode = "offline max throughput";
  EXPECT_EQ(reason(row), "mode \"offline max throughput\": the number of sequences in flight is not stated");
  row.mode = "";
  EXPECT_THAT(reason(row), HasSubstr("in flight"));
  row = batch_row();
  row.batch.reset();
  row.isl.reset();
  EXPECT_EQ(reason(row), "not stated: batch_or_concurrency, isl");
  row = batch_row();
  row.tp = 3;
  EXPECT_EQ(reason(row), "tp 3 x pp 1 do not divide 8 gpus");
}

TEST(Rules, rows_that_say_too_little_are_skipped) {
  TrainingRow row = whole_row();
  row.heads.reset();
  row.global_batch.reset();
  EXPECT_EQ(reason(row), "not stated: heads, global_batch");
  row = whole_row();
  row.unreadable = "tp: \"x\" is not a whole number";
  EXPECT_EQ(reason(row), "tp: \"x\" is not a whole number");
}

TEST(Rules, impossible_plans_are_skipped_with_the_reason) {
  TrainingRow row = whole_row();
  row.tp = 3;
  EXPECT_EQ(reason(row), "tp 3 x pp 2 do not divide 16 gpus");
  row = whole_row();
  row.tp = std::int64_t{1} << 31;
  row.pp = std::int64_t{1} << 31;
  EXPECT_THAT(reason(row), HasSubstr("do not divide 16 gpus"));
  row = whole_row();
  row.heads = 7;
  EXPECT_THAT(reason(row), HasSubstr("heads 7 does not divide hidden 1024"));
}

TEST(Rules, columns_that_contradict_each_other_become_the_nearest_plan) {
  TrainingRow row = whole_row();
  row.dp = 3;
  EXPECT_EQ(scenario(row).plan.dp, 4);
  row.micro_batch = 3;  // of 8 sequences: three passes of 3
  EXPECT_EQ(scenario(row).plan.micro_batch, 3);
  EXPECT_EQ(scenario(row).job.global_batch, 36);
  row.global_batch = 30;  // the busiest replica has 8
  EXPECT_EQ(scenario(row).job.global_batch, 36);
  row.ep = 8;
  EXPECT_EQ(scenario(row).plan.ep, 1);
  EXPECT_EQ(scenario(row).taken_as, "dp 3 -> 4; ep 8 -> 1; global_batch 30 -> 36");
  EXPECT_EQ(scenario(whole_row()).taken_as, "");
}

TEST(Rules, a_row_without_degrees_is_sliced_by_xla_where_replicas_would_be_idle_and_skipped_elsewhere) {
  TrainingRow row = whole_row();
  row.tp = row.pp = row.micro_batch = {};
  row.global_batch = 4;
  EXPECT_EQ(reason(row), "not stated: tp, pp (with 1 each, 12 of 16 gpus have no sequence)");
  row.gpu_type = "TPU-v5p";
  row.precision = "bf16";
  EXPECT_EQ(scenario(row).plan.tp, 4);
  EXPECT_EQ(scenario(row).plan.dp, 4);
  EXPECT_EQ(scenario(row).taken_as, "tp blank -> 4");
  row.tp = 1;
  EXPECT_EQ(scenario(row).plan.tp, 1);
  EXPECT_EQ(scenario(row).plan.dp, 16);
}

TEST(Rules, recompute_and_the_split_of_sequences_are_known_however_they_are_spelled) {
  const std::pair<const char*, Recompute> words[] = {{"None", Recompute::none},
                                                     {"no", Recompute::none},
                                                     {"Selective (core attn)", Recompute::selective},
                                                     {"core_attn", Recompute::selective},
                                                     {"full-block", Recompute::full},
                                                     {"uniform", Recompute::full},
                                                     {"yes", Recompute::full},
                                                     {"FULL", Recompute::full}};
  TrainingRow row = whole_row();
  for (const auto& [text, recompute] : words) {
    row.recompute = text;
    EXPECT_EQ(scenario(row).plan.recompute, recompute) << text;
  }
  row.recompute = "some";  // says nothing, as a blank does: here all fits
  EXPECT_EQ(scenario(row).plan.recompute, Recompute::none);
  row.sp = "True";
  EXPECT_TRUE(scenario(row).plan.sequence_parallel);
  row.sp = "maybe";  // the default of megatron-deepspeed
  EXPECT_FALSE(scenario(row).plan.sequence_parallel);
}

}  // namespace
}  // namespace orrery::validate::rules_test
