#include "orrery/validate/facts.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/validate/expert_all_to_all.hpp"
#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

// Hosts of four in a rack of 72; a host of a TPU pod or of Trainium has some of the torus.
constexpr bool kSharedDomain = true;
constexpr bool kXla = true;

// Names as `board_name` spells them. The longest that `gpu_type` is, or begins with, holds.
constexpr std::array kMachines = {
    MachineFacts{"v100", "dgx-1v"},
    MachineFacts{"v100-sxm2-16gb", "aws-p3"},
    MachineFacts{"v100-16gb", "aws-p3"},
    MachineFacts{"v100-sxm3", "dgx-2"},
    MachineFacts{"v100-dgx2", "dgx-2"},
    MachineFacts{"a100", "dgx-a100"},
    MachineFacts{"a100-40gb", "dgx-a100-40gb"},
    MachineFacts{"a100-sxm-40gb", "dgx-a100-40gb"},
    MachineFacts{"a100-sxm4-40gb", "dgx-a100-40gb"},
    MachineFacts{"a100-80gb-pairwise-nvlink", "a100-pairs-server"},
    MachineFacts{"a100-pairwise-nvlink", "a100-pairs-server"},
    MachineFacts{"a100-pcie", "a100-pcie-server", kSharedDomain},
    MachineFacts{"a100-80gb-pcie", "a100-pcie-server", kSharedDomain},
    MachineFacts{"a100-pcie-40gb", "a100-pcie-40gb-server", kSharedDomain},
    MachineFacts{"a100-40gb-pcie", "a100-pcie-40gb-server", kSharedDomain},
    MachineFacts{"a800", "hgx-a800"},
    MachineFacts{"a10", "a10-server"},
    MachineFacts{"a10g", "a10-server"},
    MachineFacts{"a40", "a40-server", kSharedDomain},
    MachineFacts{"l40s", "l40s-server"},
    MachineFacts{"rtx4090", "rtx-4090-server"},
    MachineFacts{"rtx-4090", "rtx-4090-server"},
    MachineFacts{"rtx-pro-6000", "rtx-pro-6000-server"},
    MachineFacts{"rtxpro6000", "rtx-pro-6000-server"},
    MachineFacts{"h100", "dgx-h100"},
    MachineFacts{"h100/h800-class-sm90", "dgx-h100"},
    MachineFacts{"sm90", "dgx-h100"},
    MachineFacts{"sm100", "dgx-b200"},
    // Of this one memory is known to differ (arXiv 2410.06511; 2.4 TB/s: unverified, from memory) and the power limit
    // to be lower, which is not modelled.
    MachineFacts{"h100-96gb-hbm2e-500w", "dgx-h100", false, 95.0, 2.4},
    MachineFacts{"h100-pcie", "h100-pcie-server", kSharedDomain},
    MachineFacts{"h100-80gb-pcie", "h100-pcie-server", kSharedDomain},
    MachineFacts{"h100-nvl", "h100-nvl-server", kSharedDomain},
    MachineFacts{"h100-80gb-pairwise-nvlink", "h100-nvl-server", kSharedDomain},
    MachineFacts{"h100-pairwise-nvlink", "h100-nvl-server", kSharedDomain},
    MachineFacts{"h800", "hgx-h800"},
    MachineFacts{"h20", "hgx-h20"},
    MachineFacts{"h200", "dgx-h200"},
    MachineFacts{"h200-nvl", "h200-nvl-server"},
    MachineFacts{"gh200", "gh200-ndr"},
    MachineFacts{"b200", "dgx-b200"},
    MachineFacts{"b300", "dgx-b300"},
    MachineFacts{"gb200", "gb200-nvl72", kSharedDomain},
    MachineFacts{"gb300", "gb300-nvl72", kSharedDomain},
    MachineFacts{"mi210", "mi210-server"},
    MachineFacts{"mi250", "mi250-node", kSharedDomain},
    MachineFacts{"mi250x", "mi250x-node", kSharedDomain},
    MachineFacts{"mi300x", "mi300x-node"},
    MachineFacts{"mi325x", "mi325x-node"},
    MachineFacts{"mi350x", "mi350x-node"},
    MachineFacts{"mi355x", "mi355x-node"},
    MachineFacts{"gaudi2", "hls-gaudi2"},
    MachineFacts{"gaudi-2", "hls-gaudi2"},
    MachineFacts{"gaudi3", "hls-gaudi3"},
    MachineFacts{"gaudi-3", "hls-gaudi3"},
    MachineFacts{"tpu-v3", "tpu-v3-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpuv3", "tpu-v3-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpu-v4", "tpu-v4-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpuv4", "tpu-v4-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpu-v5e", "tpu-v5e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpuv5e", "tpu-v5e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpu-v5-lite", "tpu-v5e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"v5e", "tpu-v5e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpu-v5p", "tpu-v5p-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpuv5p", "tpu-v5p-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"v5p", "tpu-v5p-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpu-v6e", "tpu-v6e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpuv6e", "tpu-v6e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"v6e", "tpu-v6e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"tpu-trillium", "tpu-v6e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"trillium", "tpu-v6e-pod", kSharedDomain, {}, {}, kXla},
    MachineFacts{"trainium", "aws-trn1", kSharedDomain},
    MachineFacts{"trainium1", "aws-trn1", kSharedDomain},
    MachineFacts{"trn1", "aws-trn1", kSharedDomain},
    MachineFacts{"trainium1-neuroncore", "aws-trn1-cores", kSharedDomain},
    MachineFacts{"trainium2", "aws-trn2", kSharedDomain},
    MachineFacts{"trn2", "aws-trn2", kSharedDomain},
};

using workload::Adapter;

constexpr StackFacts kMegatronCore{
    .stack = "megatron-core",
    .zero = 1,
    .sequence_parallel = true,
    .source =
        "its recipes shard the optimizer, and split the sequence with tensor parallelism (README of Megatron-LM); "
        "its performance recipes adapt the projections of attention (NVIDIA-NeMo/Megatron-Bridge: "
        "scripts/performance/configs/llama, read 2026-11)"};
constexpr StackFacts kNemo{
    .stack = "nemo",
    .zero = 1,
    .sequence_parallel = true,
    .source = "as Megatron-Core, on which NeMo and Megatron-Bridge run (docs/performance-summary.md of the latter)"};
constexpr StackFacts kMlPerf{
    .stack = "nemo-mlperf",
    .zero = 1,
    .sequence_parallel = true,
    .precision = hardware::Precision::fp8,
    .interleaves = true,
    .source =
        "as NeMo; where submitters' configurations state chunks, there are 4 to 12 a stage; "
        "every vendor's language models of rounds 3.0 to 5.1 use 8-bit GEMMs unless they say "
        "4-bit (mlcommons/training_results; rocm.blogs.amd.com, MLPerf training v5.0 and v5.1, read 2026-11); "
        "adapters on attention (mlcommons/training: llama2_70b_lora)"};
constexpr StackFacts kMegatron2021{
    .stack = "megatron-2021",
    .recompute = parallel::Recompute::full,
    .source =
        "older than both (arXiv 2104.04473, arXiv 2205.05198); checkpoints activations after every layer (arXiv "
        "1909.08053; unverified, from memory)"};
constexpr StackFacts kMegatronDeepSpeed{.stack = "megatron-deepspeed",
                                        .source = "ZeRO is off unless its stage is given"};
constexpr StackFacts kFsdp{.stack = "fsdp",
                           .zero = 3,
                           .sequence_parallel = true,
                           .adapters = Adapter::Targets::all,
                           .source =
                               "fully sharded by name; torch's tensor-parallel plans split the sequence; adapters on "
                               "every linear layer: unverified, NeMo Automodel's "
                               "examples, from memory"};

constexpr StackFacts kTorchtitan{
    .stack = "fsdp2",
    .zero = 3,
    .keeps_weights_with_stages = true,
    .sequence_parallel = true,
    .adapters = Adapter::Targets::all,
    .splits_micro_batch = true,
    .source =
        "as above; its local batch size is cut into as many micro-batches as there are stages (pytorch/torchtitan: "
        "pipeline_parallel_microbatches, in its releases of 2024 and 2025); with stages it does not reshard weights "
        "after forward (get_fsdp_reshard_after_forward_policy in torchtitan/distributed/fsdp.py, policy \"default\"; "
        "read 2026-11)"};

constexpr StackFacts kLlama3{.stack = "llama3",
                             .zero = 2,
                             .sequence_parallel = true,
                             .recompute = parallel::Recompute::none,
                             .interleaves = true,
                             .ends_are_layers = true,
                             .source =
                                 "arXiv 2407.21783 section 3.3.2: FSDP does not reshard weights after forward; the "
                                 "interleaved schedule; one layer fewer on the first and the last stage, so that the "
                                 "first chunk of the first stage has only the embedding and the last chunk of the last "
                                 "stage only the head, which with 126 layers on 16 stages means one layer a chunk; no "
                                 "activation checkpointing at 8,192 tokens, which is also what a rank has of 131,072 "
                                 "with cp 16; read 2026-11"};

constexpr StackFacts kAutomodelExperts{
    .stack = "automodel",
    .zero = 3,
    .sequence_parallel = true,
    .adapters = Adapter::Targets::all,
    .expert_parallel_over_all = true,
    .source =
        "its mixtures run on Transformer Engine and DeepEP (NVIDIA-NeMo/Automodel: docs/performance-summary.mdx); "
        "where that page has a dash for ep, its benchmarks have all ranks (ep_size 64 of 64, 8 of 8: "
        "examples/benchmark/configs/gptoss_{120b,20b}_te_deepep.yaml@037e04a6a2, read 2026-11); its dense rows, mostly "
        "adapters on one GPU, are taken as eager code: unverified"};

constexpr StackFacts kMaxText{.stack = "maxtext",
                              .zero = 3,
                              .source = "MaxText shards fully by default (ici_fsdp_parallelism: -1 in its base.yml)"};
// 0.008 GiB of rows of 128 fp32 numbers in one node, 0.0125 GiB in several.
constexpr StackFacts kHugeCtr{
    .stack = "hugectr",
    .precision = hardware::Precision::fp16,
    .tables = {workload::TableSharding::balanced, workload::TableSharding::row, 16'777, 26'214},
    .source =
        "config_DGXH100_1x8x6912.sh and _8x8x2112.sh of NVIDIA's DLRM-DCNv2 (mlcommons/training_results_v3.1): mixed "
        "precision, sharding plans auto and hier_auto, which split tables by rows until ranks have equal shares, "
        "DP_SHARDING_THRESHOLD 0.008 and 0.0125 GiB; on several nodes its all-to-all reduces partial sums within a "
        "node first (CommunicationStrategy.Hierarchical), which Orrery models for row-wise tables only; read 2026-11"};
constexpr StackFacts kSok{.stack = "sok",
                          .precision = hardware::Precision::fp16,
                          .tables = {workload::TableSharding::balanced, workload::TableSharding::balanced},
                          .source =
                              "NVIDIA-Merlin/HugeCTR: sparse_operation_kit/documents/tutorials/DLRM_Benchmark; rows "
                              "distributed over all ranks, which balanced parts come nearest to: unverified, from "
                              "memory"};

constexpr StackFacts kTimedLayers{
    .stack = "megatron-core",
    .casts_inputs = true,
    .source =
        "aiconfigurator times a linear layer's forward call on two-byte activations, of which narrow formats make a "
        "copy first (collector/*/collect_gemm.py: \"op.forward(x)\" with x in bf16; unverified, from memory)"};

constexpr StackFacts kTimedCalls{
    .stack = "megatron-core",
    .kernel_gap_us = 6.0,
    .source =
        "LLMCompass times single calls from PyTorch (arXiv 2312.03134; unverified, from memory); the gap is that of "
        "fastertransformer, which launches kernel by kernel, too"};

struct FamilyStack {
  std::string_view prefix;
  const StackFacts* stack;
};
constexpr std::array kFamilies = {
    FamilyStack{"vtrain", &kMegatronDeepSpeed},
    FamilyStack{"bigscience", &kMegatronDeepSpeed},
    FamilyStack{"megatron_seqsel", &kMegatron2021},
    FamilyStack{"megatron_sc21", &kMegatron2021},
    FamilyStack{"megatron_2020", &kMegatron2021},
    FamilyStack{"mosaic", &kFsdp},
    FamilyStack{"torchtitan", &kTorchtitan},
    FamilyStack{"automodel", &kFsdp},
    FamilyStack{"automodel_moe", &kAutomodelExperts},
    FamilyStack{"kempner", &kFsdp},
    FamilyStack{"llama3_405b", &kLlama3},
    FamilyStack{"maxtext", &kMaxText},
    FamilyStack{"mlperf", &kMlPerf},
    FamilyStack{"mlperf_dlrm", &kHugeCtr},
    FamilyStack{"sok", &kSok},
    FamilyStack{"aic", &kTimedLayers},
    FamilyStack{"llmcompass", &kTimedCalls},
    FamilyStack{"nemo", &kNemo},
    FamilyStack{"mbridge", &kNemo},
    FamilyStack{"mcore_moe_layer", &kNemo},
};

const std::array kEngines = {
    EngineFacts{"fastertransformer", "ft_", {.stack = "fastertransformer", .source = "its name"}},
    EngineFacts{"tensorrt", "trtllm", {.stack = "tensorrt-llm", .source = "its name"}},
    EngineFacts{"trtllm", "nim_", {.stack = "tensorrt-llm", .source = "NIM runs TensorRT-LLM"}},
    EngineFacts{"vllm", "vllm", {.stack = "vllm", .source = "its name"}},
    EngineFacts{"nim", "nim_", {.stack = "tensorrt-llm", .source = "NIM runs TensorRT-LLM"}},
    EngineFacts{"megatron",
                "megatron",
                {.stack = "megatron-2021",
                 .source = "NVIDIA/FasterTransformer: docs/gpt_guide.md compares with Megatron-LM of 2021"}},
};

// "NVIDIA H100 80GB HBM3", "8xA100_80GB NVLink", "H100-SXM (an instance)": lower case, hyphens for other gaps, without
// how many there are, maker, system and what stands in parentheses.
std::string board_name(std::string_view gpu_type) {
  constexpr std::array kBefore = {
      std::string_view{"nvidia-"}, std::string_view{"tesla-"}, std::string_view{"amd-"}, std::string_view{"instinct-"},
      std::string_view{"google-"}, std::string_view{"cloud-"}, std::string_view{"aws-"}, std::string_view{"intel-"},
      std::string_view{"habana-"}, std::string_view{"dgx-"},   std::string_view{"hgx-"}};
  std::string name = dashed(gpu_type.substr(0, gpu_type.find('(')));
  const auto digits = name.find_first_not_of("0123456789");
  if (digits != std::string::npos && digits > 0 && name[digits] == 'x') {
    name.erase(0, name.find_first_not_of('-', digits + 1));
  }
  for (bool found = true; found;) {
    found = false;
    for (const auto before : kBefore) {
      if (!name.starts_with(before)) { continue; }
      name.erase(0, before.size());
      found = true;
    }
  }
  return name;
}

// The entry with the longest prefix of `name`; null when none is one.
template <class Table>
const typename Table::value_type* longest_prefix(const Table& table, std::string_view name) {
  const typename Table::value_type* best = nullptr;
  for (const auto& entry : table) {
    if (name.starts_with(entry.prefix) && (best == nullptr || entry.prefix.size() > best->prefix.size())) {
      best = &entry;
    }
  }
  return best;
}

}  // namespace

const StackFacts kNemoRecorded{.stack = "nemo-recorded",
                               .zero = 1,
                               .sequence_parallel = true,
                               .source = "as NeMo; what its recipes record, fuse and overlap: recipes.cpp"};
const StackFacts kNemoAllToAll{.stack = "nemo-alltoall",
                               .zero = 1,
                               .sequence_parallel = true,
                               .source = "as NeMo; which of its recipes send every copy of a token: recipes.cpp"};

const ModelFacts* model_facts(std::string_view model) {
  const auto organisation = model.find('/');
  const bool is_path = organisation != std::string_view::npos && model.find_first_of(" (") > organisation;
  const std::string name = dashed(is_path ? model.substr(organisation + 1) : model);
  const ModelFacts* best = nullptr;
  std::size_t longest = 0;
  for (const auto& facts : all_model_facts()) {
    for (const auto prefix : facts.prefixes) {
      if (prefix.size() > longest && name.starts_with(prefix)) {
        best = &facts;
        longest = prefix.size();
      }
    }
  }
  return best;
}

std::span<const MachineFacts> machine_facts() { return kMachines; }

const MachineFacts* machine_of(std::string_view gpu_type) {
  const std::string name = board_name(gpu_type);
  const MachineFacts* best = nullptr;
  for (const auto& machine : kMachines) {
    if (!name.starts_with(machine.gpu_type)) { continue; }
    const bool ends = name.size() == machine.gpu_type.size() || name[machine.gpu_type.size()] == '-';
    if (ends && (best == nullptr || machine.gpu_type.size() > best->gpu_type.size())) { best = &machine; }
  }
  return best;
}

const StackFacts& stack_of(std::string_view family, std::string_view gpu_type) {
  const auto* machine = machine_of(gpu_type);
  if (machine != nullptr && machine->xla) { return kMaxText; }
  const auto* found = longest_prefix(kFamilies, family);
  return found == nullptr ? kMegatronCore : *found->stack;
}

const EngineFacts& engine_of(std::string_view engine, std::string_view family) {
  static const EngineFacts other{
      "", "", {.stack = "vllm", .source = "an engine that is not known is taken as one like it"}};
  const std::string name = letters_and_digits(engine);
  for (const auto& facts : kEngines) {
    if (name.empty() ? family.starts_with(facts.family) : name.starts_with(facts.engine)) { return facts; }
  }
  return other;
}

Measured measured_by(std::string_view metric) {
  if (metric == "forward_time" || metric == "backward_time") { return Measured::pass; }
  return all_to_all_named(metric) ? Measured::all_to_all : Measured::step;
}

}  // namespace orrery::validate
