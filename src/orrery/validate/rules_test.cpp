// Each rule from a row to a scenario.
#include "orrery/validate/rules.hpp"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "orrery/validate/facts.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::validate {
namespace {

using hardware::Precision;
using parallel::Recompute;
using parallel::ScheduleKind;
using testing::HasSubstr;

// GPT of 2 layers on one node, everything stated.
TrainingRow whole_row() {
  TrainingRow row;
  row.family = "vtrain_multi";
  row.model = "GPT-tiny";
  row.precision = "fp16";
  row.gpu_type = "A100-80GB";
  row.sp = "no";
  row.recompute = "full";
  row.layers = 8;
  row.hidden = 1024;
  row.heads = 16;
  row.seq = 2048;
  row.gpus = 16;
  row.gpus_per_node = 8;
  row.tp = 2;
  row.pp = 2;
  row.micro_batch = 2;
  row.global_batch = 32;
  row.zero = 0;
  return row;
}

// Keeps the parts, to which scenarios point, alive.
Scenario scenario(const AnyRow& row) {
  static std::deque<Parts> kept;
  auto parts = parts_for(ORRERY_SOURCE_DATA_DIR, {row});
  EXPECT_TRUE(parts) << (parts ? "" : parts.error().text());
  kept.push_back(std::move(*parts));
  auto made = scenario_of(row, kept.back());
  EXPECT_TRUE(made) << (made ? "" : made.error());
  return made ? std::move(*made) : Scenario{};
}

std::string reason(const AnyRow& row) {
  const auto parts = parts_for(ORRERY_SOURCE_DATA_DIR, {row});
  EXPECT_TRUE(parts);
  const auto made = scenario_of(row, *parts);
  EXPECT_FALSE(made);
  return made ? "" : made.error();
}

workload::Model model(const TrainingRow& row) {
  const auto made = model_of(row, *row.seq, *parts_for(ORRERY_SOURCE_DATA_DIR, {row}));
  EXPECT_TRUE(made) << (made ? "" : made.error());
  return made ? *made : workload::Model{};
}

TEST(Rules, sizes_come_from_the_row) {
  TrainingRow row = whole_row();
  row.kv_heads = 4;
  row.ffn = 3000;
  row.vocab = 777;
  const Scenario s = scenario(row);
  EXPECT_EQ(s.model.layers, 8);
  EXPECT_EQ(s.model.hidden, 1024);
  EXPECT_EQ(s.model.heads, 16);
  EXPECT_EQ(s.model.kv_heads, 4);
  EXPECT_EQ(s.model.head_dim, 64);
  EXPECT_EQ(s.model.ffn, 3000);
  EXPECT_EQ(s.model.vocab, 777);
  EXPECT_EQ(s.model.max_seq, 2048);
  EXPECT_EQ(s.job.seq, 2048);
  EXPECT_EQ(s.job.global_batch, 32);
}

TEST(Rules, blank_sizes_follow_from_the_kind_of_network) {
  const Scenario gpt = scenario(whole_row());
  EXPECT_EQ(gpt.model.kv_heads, 16);
  EXPECT_EQ(gpt.model.ffn, 4096);
  EXPECT_EQ(gpt.model.vocab, 50257);
  TrainingRow row = whole_row();
  row.model = "LLAMA2-7B";
  row.hidden = 4096;
  row.heads = 32;
  EXPECT_EQ(model(row).ffn, 11008);  // 8/3 x 4096 = 10922.7, next multiple of 256
  row.model = "Llama3.1-8B";
  EXPECT_EQ(model(row).ffn, 14336);
  EXPECT_EQ(model(row).vocab, 128256);
}

TEST(Rules, the_kind_of_network_follows_from_the_models_name) {
  const workload::Model gpt = scenario(whole_row()).model;
  EXPECT_EQ(gpt.position, workload::Position::learned);
  EXPECT_EQ(gpt.dropout, 0.1);
  EXPECT_TRUE(gpt.tied_embeddings && gpt.qkv_bias && gpt.mlp_bias && gpt.attention_output_bias);
  TrainingRow row = whole_row();
  row.model = "LLAMA3_70B SFT";
  const workload::Model llama = model(row);
  EXPECT_EQ(llama.norm, workload::Normalisation::rmsnorm);
  EXPECT_EQ(llama.activation, workload::Activation::silu);
  EXPECT_EQ(llama.position, workload::Position::rotary);
  EXPECT_TRUE(llama.gated_mlp);
  EXPECT_FALSE(llama.tied_embeddings || llama.qkv_bias || llama.mlp_bias);
  EXPECT_EQ(llama.dropout, 0.0);
  row.model = "GPT3-175B";  // the longer prefix wins over "gpt"
  EXPECT_EQ(model(row).dropout, 0.0);
  row.model = "BLOOM-176B";
  EXPECT_TRUE(model(row).embedding_norm);
  row.model = "Mystery-7B";
  EXPECT_THAT(reason(row), HasSubstr("nothing is known of model \"Mystery-7B\""));
}

// NumParams of mosaicml/llm-foundry:scripts/train/benchmarking/README.md: 7b at 2048 and 13b at 4096 tokens. They
// differ with the sequence, as learned positions do.
TEST(Rules, mpt_has_the_parameters_that_its_table_prints) {
  TrainingRow row = whole_row();
  row.model = "MPT-7b";
  row.layers = 32;
  row.hidden = 4096;
  row.heads = 32;
  EXPECT_EQ(workload::parameter_count(model(row)).total, 6'658'859'008);
  row.model = "MPT-13b";
  row.layers = 40;
  row.hidden = 5120;
  row.heads = 40;
  row.seq = 4096;
  EXPECT_EQ(workload::parameter_count(model(row)).total, 12'864'440'320);
}

TEST(Rules, machines_come_from_the_catalogue_and_bandwidths_from_the_row) {
  TrainingRow row = whole_row();
  const Scenario plain = scenario(row);
  EXPECT_EQ(plain.cluster.accelerator.name, "a100-sxm-80gb");
  EXPECT_EQ(plain.cluster.devices, 16);
  EXPECT_EQ(plain.cluster.dimensions[0].bandwidth.value(), 300e9);
  EXPECT_EQ(plain.cluster.dimensions[1].bandwidth.value(), 25e9);
  row.intra_bw_GBps = 123;
  row.nic_bw_GBps_per_gpu = 12.5;
  row.gpus_per_node = 4;
  const Scenario changed = scenario(row);
  EXPECT_EQ(changed.cluster.dimensions[0].bandwidth.value(), 123e9);
  EXPECT_EQ(changed.cluster.dimensions[0].size, 4);
  EXPECT_EQ(changed.cluster.dimensions[1].bandwidth.value(), 12.5e9);
  EXPECT_EQ(changed.cluster.dimensions[1].size, 4);
  EXPECT_EQ(changed.cluster.dimensions[0].link.name, plain.cluster.dimensions[0].link.name);
  const std::pair<const char*, const char*> names[] = {
      {"A100-40GB", "a100-sxm-40gb"}, {"H100-SXM", "h100-sxm"}, {"H200-SXM", "h200-sxm"}, {"B200", "b200-sxm"}};
  for (const auto& [gpu_type, accelerator] : names) {
    row.gpu_type = gpu_type;
    EXPECT_EQ(scenario(row).cluster.accelerator.name, accelerator);
  }
}

TEST(Rules, every_machine_stack_and_network_of_the_tables_is_in_the_catalogue) {
  const hardware::Catalogue catalogue(ORRERY_SOURCE_DATA_DIR);
  for (const auto& machine : machine_facts()) {
    EXPECT_TRUE(catalogue.cluster(std::string(machine.cluster), 0)) << machine.cluster;
  }
  for (const auto* family : {"vtrain_multi", "megatron_seqsel", "mosaic_mpt", "anything"}) {
    EXPECT_TRUE(catalogue.stack(std::string(stack_of(family).stack))) << family;
  }
  for (const auto& facts : all_model_facts()) {
    if (facts.catalogue.empty()) { continue; }
    EXPECT_TRUE(workload::load_model(ORRERY_SOURCE_DATA_DIR, std::string(facts.catalogue))) << facts.catalogue;
  }
}

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
  EXPECT_FALSE(plan.dp_overlap);  // the habit of megatron-deepspeed
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

TEST(Rules, blank_sharding_and_sequence_parallelism_are_habits_of_the_stack) {
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

// A model of a few MB fits whatever is chosen: nothing is recomputed and the micro-batch is the largest divisor of the
// 8 sequences of a replica.
TEST(Rules, blank_recompute_and_micro_batch_are_the_least_and_the_largest_that_fit) {
  TrainingRow row = whole_row();
  row.recompute = "";
  row.micro_batch.reset();
  row.seq = 128;
  EXPECT_EQ(scenario(row).plan.recompute, Recompute::none);
  EXPECT_EQ(scenario(row).plan.micro_batch, 8);
}

TEST(Rules, number_formats) {
  TrainingRow row = whole_row();
  row.gpu_type = "B200";
  const std::pair<const char*, Precision> formats[] = {
      {"", Precision::bf16},     {"bf16", Precision::bf16},  {"fp16", Precision::fp16}, {"fp8", Precision::fp8},
      {"mxfp8", Precision::fp8}, {"fp8-mx", Precision::fp8}, {"nvfp4", Precision::fp4}};
  for (const auto& [text, precision] : formats) {
    row.precision = text;
    EXPECT_EQ(scenario(row).job.precision, precision) << text;
  }
  row.precision = "int4";
  EXPECT_THAT(reason(row), HasSubstr("precision: \"int4\" is not known"));
  row.precision = "fp8";
  row.gpu_type = "A100-80GB";
  EXPECT_EQ(reason(row), "a100-sxm-80gb has no fp8 matrix products");
}

TEST(Rules, a_blank_number_format_is_the_habit_of_the_stack_where_the_accelerator_has_it) {
  TrainingRow row = whole_row();
  row.precision = "";
  row.family = "mlperf_gpt3";
  row.gpu_type = "H100-SXM";
  EXPECT_EQ(scenario(row).job.precision, Precision::fp8);
  row.gpu_type = "A100-80GB";
  EXPECT_EQ(scenario(row).job.precision, Precision::bf16);
  row.gpu_type = "V100-SXM2-32GB";
  EXPECT_EQ(scenario(row).job.precision, Precision::fp16);
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
  EXPECT_EQ(reason(row), "tp 2 x cp 3 x pp 2 does not divide 16 gpus");
}

// DeepSeek-V3 as Megatron-Bridge's tables have it: what they leave blank follows from the catalogue.
TrainingRow mixture_row() {
  TrainingRow row;
  row.family = "mbridge_moe";
  row.model = "DeepSeekV3";
  row.precision = "mxfp8";
  row.gpu_type = "GB200";
  row.layers = 61;
  row.hidden = 7168;
  row.heads = 128;
  row.experts = 256;
  row.topk = 8;
  row.moe_ffn = 2048;
  row.seq = 4096;
  row.gpus = 256;
  row.gpus_per_node = 4;
  row.pp = 4;
  row.ep = 64;
  row.vpp = 4;
  row.micro_batch = 1;
  row.global_batch = 4096;
  return row;
}

TEST(Rules, networks_of_the_catalogue_bring_what_a_row_cannot_say) {
  const Scenario s = scenario(mixture_row());
  EXPECT_EQ(s.model.experts.shared_ffn, 2048);
  EXPECT_EQ(s.model.experts.first_dense, 3);
  EXPECT_EQ(s.model.mtp_layers, 1);
  EXPECT_TRUE(s.model.is_latent());
  EXPECT_EQ(s.plan.ep, 64);
  EXPECT_EQ(s.plan.etp, 1);
  EXPECT_EQ(s.plan.dp, 64);
  TrainingRow row = mixture_row();
  row.model = "DeepSeekV3 (w/o MTP)";
  EXPECT_EQ(model(row).mtp_layers, 0);
  row.layers.reset();
  row.hidden.reset();
  row.heads.reset();
  EXPECT_EQ(model(row).layers, 61);
}

TEST(Rules, sizes_that_are_not_those_of_the_networks_entry_skip_the_row) {
  TrainingRow row = mixture_row();
  row.hidden = 4096;
  EXPECT_EQ(reason(row), "hidden 4096 is not that of deepseek-v3-mtp (7168)");
  row = mixture_row();
  row.topk = 4;
  EXPECT_EQ(reason(row), "topk 4 is not that of deepseek-v3-mtp (8)");
  row = mixture_row();
  row.layers = 16;
  row.vocab = 32000;
  EXPECT_EQ(model(row).layers, 16);
  EXPECT_EQ(model(row).vocab, 32000);
}

TEST(Rules, experts_of_a_row_make_a_mixture_of_any_kind_of_network) {
  TrainingRow row = whole_row();
  row.model = "Llama3-moe";
  row.experts = 8;
  row.topk = 2;
  row.moe_ffn = 512;
  EXPECT_EQ(model(row).experts, (workload::Experts{.count = 8, .active = 2, .ffn = 512}));
}

TEST(Rules, a_domain_of_several_hosts_is_filled_as_far_as_whole_ones_make_up_the_job) {
  TrainingRow row = mixture_row();
  EXPECT_EQ(scenario(row).cluster.dimensions[0].size, 64);  // 4 x 64, not hosts of 4 and not racks of 72
  EXPECT_EQ(scenario(row).cluster.dimensions[1].size, 4);
  row.gpus = 72;
  row.pp = 1;
  row.ep = 8;
  row.global_batch = 72;
  EXPECT_EQ(scenario(row).cluster.dimensions[0].size, 72);
  row.gpus = 8;
  row.global_batch = 8;
  EXPECT_EQ(scenario(row).cluster.dimensions[0].size, 8);
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
  EXPECT_EQ(s.stack->name, "fsdp");
  EXPECT_EQ(s.plan.zero, 3);
  EXPECT_EQ(s.job.precision, Precision::bf16);
}

TEST(Rules, a_machine_may_have_other_memory_than_the_catalogues) {
  TrainingRow row = whole_row();
  row.gpu_type = "H100-96GB-HBM2e-500W";
  const auto& accelerator = scenario(row).cluster.accelerator;
  EXPECT_EQ(accelerator.memory.value(), 95.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(accelerator.memory_bandwidth.value(), 2.4e12);
}

TEST(Rules, what_is_not_built_or_no_step_is_skipped) {
  TrainingRow row = whole_row();
  row.gpu_type = "TPU-v7";
  EXPECT_EQ(reason(row), "no accelerator \"TPU-v7\" in the catalogue");
  row.model = "DLRM-DCNv2 (MLPerf, Criteo-multihot)";
  EXPECT_EQ(reason(row), "recommenders are not built yet");
  row.model = "Nemotron_3_Nano";
  EXPECT_THAT(reason(row), HasSubstr("Mamba"));
  row.model = "Nemotron-340B";
  row.gpu_type = "A100-80GB";
  EXPECT_EQ(scenario(row).model.activation, workload::Activation::relu);
  row.family = "mcore_moe_layer";
  EXPECT_EQ(reason(row), "a pass over one layer, not a step");
  row.family = "aic_deepep_ll";
  EXPECT_EQ(reason(row), "a collective, not a step");
}

// FasterTransformer's GPT of 175 billion parameters.
InferenceRow batch_row() {
  InferenceRow row;
  row.family = "ft_gpt_static";
  row.model = "GPT-175B";
  row.precision = "fp16";
  row.gpu_type = "A100-80GB";
  row.mode = "static batch";
  row.layers = 96;
  row.hidden = 12288;
  row.heads = 96;
  row.vocab = 51200;
  row.gpus = 8;
  row.tp = 8;
  row.pp = 1;
  row.batch = 16;
  row.isl = 128;
  row.osl = 8;
  return row;
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

TEST(Rules, requests_in_flight_that_are_not_stated_are_skipped) {
  InferenceRow row = batch_row();
  row.mode = "offline max throughput";
  EXPECT_EQ(reason(row), "mode \"offline max throughput\": how many sequences are in flight is not stated");
  row.mode = "";
  EXPECT_THAT(reason(row), HasSubstr("in flight"));
  row = batch_row();
  row.batch.reset();
  row.isl.reset();
  EXPECT_EQ(reason(row), "not stated: batch_or_concurrency, isl");
  row = batch_row();
  row.tp = 3;
  EXPECT_EQ(reason(row), "tp 3 x pp 1 does not divide 8 gpus");
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
  EXPECT_EQ(reason(row), "tp 3 x pp 2 does not divide 16 gpus");
  row = whole_row();
  row.tp = std::int64_t{1} << 31;
  row.pp = std::int64_t{1} << 31;
  EXPECT_THAT(reason(row), HasSubstr("does not divide 16 gpus"));
  row = whole_row();
  row.dp = 3;
  EXPECT_THAT(reason(row), HasSubstr("dp: tp 2 x pp 2 x dp 3 = 12 devices"));
  row = whole_row();
  row.micro_batch = 3;
  EXPECT_THAT(reason(row), HasSubstr("micro-batch: \"3\" does not divide the 8 sequences"));
  row = whole_row();
  row.gpus = 12;
  row.pp = 1;
  EXPECT_THAT(reason(row), HasSubstr("12 devices do not fill whole nodes of 8"));
  row = whole_row();
  row.heads = 7;
  EXPECT_THAT(reason(row), HasSubstr("hidden 1024 does not divide by heads 7"));
  row = whole_row();
  row.recompute = "some";
  EXPECT_EQ(reason(row), "recompute: \"some\" is not none, selective or full");
  row = whole_row();
  row.sp = "maybe";
  EXPECT_EQ(reason(row), "sp: \"maybe\" is not yes or no");
}

}  // namespace
}  // namespace orrery::validate
