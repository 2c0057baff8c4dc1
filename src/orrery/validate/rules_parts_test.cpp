// Each rule from a row to a network, a machine and a number format.
#include "orrery/validate/rules.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "orrery/validate/facts.hpp"
#include "orrery/validate/rules_samples.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::validate::rules_parts_test {
namespace {

using hardware::Precision;
using testing::HasSubstr;
using namespace samples;

TEST(RulesOfParts, sizes_come_from_the_row) {
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

TEST(RulesOfParts, blank_sizes_follow_from_the_kind_of_network) {
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

TEST(RulesOfParts, the_kind_of_network_follows_from_the_models_name) {
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
  EXPECT_EQ(model(row).position, workload::Position::learned);  // by its shape
  row.kv_heads = 2;
  EXPECT_TRUE(model(row).gated_mlp);
  EXPECT_EQ(model(row).kv_heads, 2);
}

// NumParams of mosaicml/llm-foundry:scripts/train/benchmarking/README.md: 7b at 2048 and 13b at 4096 tokens. They
// differ with the sequence, as learned positions do.
TEST(RulesOfParts, mpt_has_the_parameters_that_its_table_prints) {
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

TEST(RulesOfParts, machines_come_from_the_catalogue_and_bandwidths_from_the_row) {
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

TEST(RulesOfParts, models_are_known_however_they_are_spelled) {
  for (const auto& names : std::vector<std::vector<const char*>>{
           {"Llama-2-70B", "LLAMA2 70B", "llama_2_70b", "meta-llama/Llama-2-70b-hf", "Llama 70B"},
           {"Llama-3.1-8B", "LLAMA3.1_8B", "Llama 3 8B", "meta-llama/Llama-3.1-8B"},
           {"Qwen3_235B_a22B", "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B"},
           {"DeepSeekV3 (w/o MTP)", "DeepSeek-V3", "deepseek v3 671B"}}) {
    ASSERT_NE(model_facts(names.front()), nullptr) << names.front();
    for (const char* name : names) {
      ASSERT_NE(model_facts(name), nullptr) << name;
      EXPECT_EQ(model_facts(name), model_facts(names.front())) << name;
    }
  }
  EXPECT_EQ(model_facts("xyz"), nullptr);
  EXPECT_EQ(engine_of("TRT-LLM", "").stack.stack, "tensorrt-llm");
}

TEST(RulesOfParts, accelerators_are_known_however_they_are_spelled) {
  const std::pair<const char*, const char*> names[] = {{"NVIDIA H100 80GB HBM3", "dgx-h100"},
                                                       {"h100_sxm", "dgx-h100"},
                                                       {"DGX H100", "dgx-h100"},
                                                       {"H100-SXM (a3-ultragpu-8g)", "dgx-h100"},
                                                       {"H100 PCIe", "h100-pcie-server"},
                                                       {"H100 NVL", "h100-nvl-server"},
                                                       {"A100-PCIE-40GB", "a100-pcie-40gb-server"},
                                                       {"A40-pairwise-NVLink", "a40-server"},
                                                       {"MI250", "mi250-node"},
                                                       {"8xA100-80GB NVLink", "dgx-a100"},
                                                       {"A100-SXM4-40GB", "dgx-a100-40gb"},
                                                       {"GB200 NVL72", "gb200-nvl72"},
                                                       {"AMD Instinct MI300X", "mi300x-node"},
                                                       {"TPU v6e", "tpu-v6e-pod"},
                                                       {"Trillium", "tpu-v6e-pod"},
                                                       {"A10", "a10-server"}};
  for (const auto& [name, cluster] : names) {
    ASSERT_NE(machine_of(name), nullptr) << name;
    EXPECT_EQ(machine_of(name)->cluster, cluster) << name;
  }
  for (const char* name : {"", "Z9", "H1000", "A1000", "H", "8x"}) { EXPECT_EQ(machine_of(name), nullptr) << name; }
}

// 12 devices of nodes of 8 are two times 6; superchips that are nodes by themselves have one network.
TEST(RulesOfParts, nodes_that_the_job_does_not_fill_have_as_many_each) {
  TrainingRow row = whole_row();
  row.gpus = 12;
  row.pp = 1;
  EXPECT_EQ(scenario(row).cluster.dimensions[0].size, 6);
  EXPECT_EQ(scenario(row).cluster.dimensions[1].size, 2);
  EXPECT_THAT(scenario(row).taken_as, HasSubstr("gpus_per_node 8 -> 6"));
  row.gpu_type = "GH200";
  row.nic_bw_GBps_per_gpu = 25;
  EXPECT_EQ(scenario(row).cluster.dimensions[0].size, 12);
  EXPECT_EQ(scenario(row).cluster.dimensions[0].bandwidth.value(), 25e9);
}

TEST(RulesOfParts, every_machine_stack_and_network_of_the_tables_is_in_the_catalogue) {
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

TEST(RulesOfParts, number_formats) {
  TrainingRow row = whole_row();
  row.gpu_type = "B200";
  const std::pair<const char*, Precision> formats[] = {
      {"", Precision::bf16},     {"bf16", Precision::bf16},  {"fp16", Precision::fp16}, {"fp8", Precision::fp8},
      {"mxfp8", Precision::fp8}, {"fp8-mx", Precision::fp8}, {"nvfp4", Precision::fp4}};
  for (const auto& [text, precision] : formats) {
    row.precision = text;
    EXPECT_EQ(scenario(row).job.precision, precision) << text;
  }
  row.precision = "fp64";
  EXPECT_THAT(reason(row), HasSubstr("precision: unknown number format \"fp64\""));
  row.precision = "fp8";
  row.gpu_type = "A100-80GB";
  EXPECT_EQ(scenario(row).job.precision, Precision::bf16);  // converted before it is multiplied
}

TEST(RulesOfParts, a_blank_number_format_is_the_habit_of_the_stack_where_the_accelerator_has_it) {
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

TEST(RulesOfParts, networks_of_the_catalogue_bring_what_a_row_cannot_say) {
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

TEST(RulesOfParts, sizes_of_the_row_win_over_those_of_the_networks_entry) {
  TrainingRow row = mixture_row();
  row.hidden = 4096;
  EXPECT_EQ(model(row).hidden, 4096);
  row = mixture_row();
  row.topk = 4;
  EXPECT_EQ(model(row).experts.active, 4);
  row = mixture_row();
  row.layers = 16;
  row.vocab = 32000;
  EXPECT_EQ(model(row).layers, 16);
  EXPECT_EQ(model(row).vocab, 32000);
}

TEST(RulesOfParts, experts_of_a_row_make_a_mixture_of_any_kind_of_network) {
  TrainingRow row = whole_row();
  row.model = "Llama3-moe";
  row.experts = 8;
  row.topk = 2;
  row.moe_ffn = 512;
  EXPECT_EQ(model(row).experts, (workload::Experts{.count = 8, .active = 2, .ffn = 512}));
}

TEST(RulesOfParts, a_domain_of_several_hosts_is_filled_as_far_as_whole_ones_make_up_the_job) {
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

TEST(RulesOfParts, a_machine_may_have_other_memory_than_the_catalogues) {
  TrainingRow row = whole_row();
  row.gpu_type = "H100-96GB-HBM2e-500W";
  const auto& accelerator = scenario(row).cluster.accelerator;
  EXPECT_EQ(accelerator.memory.value(), 95.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(accelerator.memory_bandwidth.value(), 2.4e12);
}

}  // namespace
}  // namespace orrery::validate::rules_parts_test
