// Runs whose publications say that they fit in memory, or that they do not: docs/models/memory.md lists them.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"
#include "orrery/config/node.hpp"

namespace orrery::api::published_memory_test {
namespace {

struct Published {
  const char* name;
  bool fits;
  const char* scenario;
  bool is_missed = false;  // the prediction is wrong, by less than kMiss of the capacity
};

constexpr double kMiss = 0.1;

// arXiv 2407.21783 table 4; arXiv 2412.19437 sections 3.2 and 3.3; arXiv 2205.05198 table 3 and figure 1; arXiv
// 2211.05100 table 3; arXiv 2305.14314 abstract: one 48 GB GPU for a 65B model, and more than 780 GB for its regular
// fine-tuning.
constexpr Published kRuns[] = {
    {"Llama 3 405B, no recompute", true,
     "{model: llama-3.1-405b, cluster: meta-24k-roce, devices: 16384, stack: llama3, tp: 8, pp: 16, dp: 128, cp: 1, "
     "global_batch: 2048, seq: 8192, vpp: 8, embedding_as_layer: true, head_as_layer: true, recompute: none}",
     true},
    {"DeepSeek-V3", true,
     "{model: deepseek-v3, cluster: hgx-h800, devices: 2048, stack: hai-llm, precision: fp8, tp: 1, pp: 16, ep: 64, "
     "schedule: dualpipe, zero: 1, global_batch: 15360, seq: 4096, recompute: selective, "
     "recompute_modules: \"layernorm,mla_up_proj,act,moe_act\"}"},
    {"GPT-3 175B, selective recompute", true,
     "{model: gpt3-175b, cluster: dgx-a100, devices: 64, stack: megatron-2021, tp: 8, pp: 8, vpp: 3, micro_batch: 1, "
     "global_batch: 64, seq: 2048, zero: 0, recompute: selective, sequence_parallel: true}"},
    {"GPT-3 175B, no recompute", false,
     "{model: gpt3-175b, cluster: dgx-a100, devices: 64, stack: megatron-2021, tp: 8, pp: 8, vpp: 3, micro_batch: 1, "
     "global_batch: 64, seq: 2048, zero: 0, recompute: none, sequence_parallel: false}"},
    {"MT-NLG 530B, selective recompute", true,
     "{model: mt-nlg-530b, cluster: dgx-a100, devices: 280, stack: megatron-2021, tp: 8, pp: 35, vpp: 3, micro_batch: "
     "1, global_batch: 280, seq: 2048, zero: 0, recompute: selective, sequence_parallel: true}"},
    {"MT-NLG 530B, no recompute", false,
     "{model: mt-nlg-530b, cluster: dgx-a100, devices: 280, stack: megatron-2021, tp: 8, pp: 35, vpp: 3, micro_batch: "
     "1, global_batch: 280, seq: 2048, zero: 0, recompute: none, sequence_parallel: false}"},
    {"GPT 1T, selective recompute", true,
     "{model: megatron-1t, cluster: dgx-a100, devices: 512, stack: megatron-2021, tp: 8, pp: 64, vpp: 1, micro_batch: "
     "1, global_batch: 512, seq: 2048, zero: 0, recompute: selective, sequence_parallel: true}"},
    {"GPT 1T, no recompute", false,
     "{model: megatron-1t, cluster: dgx-a100, devices: 512, stack: megatron-2021, tp: 8, pp: 64, vpp: 1, micro_batch: "
     "1, global_batch: 512, seq: 2048, zero: 0, recompute: none, sequence_parallel: false}"},
    {"BLOOM 176B", true,
     "{model: bloom-176b, cluster: dgx-a100, devices: 384, stack: megatron-deepspeed, tp: 4, pp: 12, dp: 8, "
     "micro_batch: 2, global_batch: 2048, seq: 2048, zero: 1, recompute: full}"},
    {"QLoRA of LLaMA 65B on 48 GB", true,
     "{model: llama-1-65b, cluster: a40-server, devices: 1, stack: fsdp, task: finetune, lora: 64, lora_targets: all, "
     "weight_format: nf4, micro_batch: 1, global_batch: 16, seq: 512, recompute: full}"},
    {"fine-tuning of LLaMA 65B on 640 GB", false,
     "{model: llama-1-65b, cluster: dgx-a100, devices: 8, stack: fsdp, task: finetune, zero: 3, micro_batch: 1, "
     "global_batch: 8, seq: 512, recompute: full}"},
};

TEST(PublishedMemory, runs_fit_if_and_only_if_they_did) {
  const Orrery orrery(ORRERY_SOURCE_DATA_DIR);
  for (const Published& run : kRuns) {
    const auto scenario = config::parse_yaml(run.scenario, run.name);
    ASSERT_TRUE(scenario) << scenario.error().text();
    const auto request = estimate::request_record().read(*scenario);
    ASSERT_TRUE(request) << request.error().text();
    const auto answer = orrery.estimate(*request);
    ASSERT_TRUE(answer) << run.name << ": " << answer.error().text();
    const auto& memory = answer->estimate.memory;
    EXPECT_EQ(memory.fits(), run.fits != run.is_missed) << run.name << ": " << memory.total().value() / 1073741824.0
                                                        << " GiB of " << memory.capacity.value() / 1073741824.0;
    if (run.is_missed) { EXPECT_NEAR(memory.total() / memory.capacity, 1.0, kMiss) << run.name; }
    RecordProperty(run.name, fmt::format("{:.1f}", memory.total().value() / 1073741824.0));
  }
}

}  // namespace
}  // namespace orrery::api::published_memory_test
