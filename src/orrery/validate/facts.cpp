#include "orrery/validate/facts.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace orrery::validate {

namespace {

using workload::Activation;
using workload::Normalisation;
using workload::Position;

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Sources are repository:path@commit, read 2026-11.
const std::vector<ModelFacts>& all_models() {
  static const std::vector<ModelFacts> table = {
      {.prefixes = {"gpt"},
       .dropout = 0.1,
       .vocab = 50257,
       .source =
           "NVIDIA/Megatron-LM:megatron/arguments.py@00129014dc: MLP of 4 hidden, dropouts 0.1 by default; GPT-2's "
           "vocabulary; learned positions, biases and shared embeddings of GPT-2"},
      {.prefixes = {"gpt3-"},
       .dropout = 0.0,
       .vocab = 51200,
       .source = "mlcommons/training:large_language_model/megatron-lm/run_gpt3.sh@52b7253d85: as GPT, both dropouts 0; "
                 "vocabulary: unverified, of the benchmark's tokenizer"},
      {.prefixes = {"gpt-neox"},
       .position = Position::rotary,
       .tied_embeddings = false,
       .parallel_residual = true,
       .vocab = 50432,
       .source = "unverified: arXiv 2204.06745, from memory"},
      {.prefixes = {"bloom"},
       .position = Position::alibi,
       .embedding_norm = true,
       .dropout = 0.1,
       .vocab = 250880,
       .source =
           "bigscience-workshop/bigscience:train/tr11-176B-ml/tr11-176B-ml.slurm@003b25057e; Megatron's dropouts, "
           "which it leaves alone"},
      {.prefixes = {"mpt-"},
       .vocab = 50368,
       .source = "mosaicml/llm-foundry:llmfoundry/models/mpt/configuration_mpt.py@0085285a95 and "
                 "scripts/train/yamls/pretrain/mpt-7b.yaml@15fb4ffaa6: defaults, no dropout, learned positions (no "
                 "ALiBi unless asked for); parameter counts agree with its scripts/train/benchmarking/README.md"},
      {.prefixes = {"llama2", "llama-2"},
       .activation = Activation::silu,
       .norm = Normalisation::rmsnorm,
       .position = Position::rotary,
       .gated_mlp = true,
       .biases = false,
       .tied_embeddings = false,
       .ffn_per_hidden = 8.0 / 3.0,
       .ffn_multiple = 256,
       .vocab = 32000,
       .source = "NVIDIA/NeMo:nemo/collections/llm/gpt/model/llama.py (7B: 4096 -> 11008, 13B: 5120 -> 13824)"},
      {.prefixes = {"llama3", "llama-3"},
       .activation = Activation::silu,
       .norm = Normalisation::rmsnorm,
       .position = Position::rotary,
       .gated_mlp = true,
       .biases = false,
       .tied_embeddings = false,
       .ffn_per_hidden = 3.5,
       .vocab = 128256,
       .source = "NVIDIA/NeMo:nemo/collections/llm/gpt/model/llama.py (70B: 8192 -> 28672)"},
      {.prefixes = {"nemotron"},
       .activation = Activation::relu,
       .position = Position::rotary,
       .biases = false,
       .tied_embeddings = false,
       .vocab = 256000,
       .source = "NVIDIA/NeMo:nemo/collections/llm/gpt/model/nemotron.py@c341fb3801: a squared relu; vocabulary: "
                 "unverified, from memory"},
  };
  return table;
}

constexpr std::array kMachines = {
    MachineFacts{"A100-40GB", "dgx-a100-40gb"}, MachineFacts{"A100-80GB", "dgx-a100"},
    MachineFacts{"H100-SXM", "dgx-h100"},       MachineFacts{"H200-SXM", "dgx-h200"},
    MachineFacts{"B200", "dgx-b200"},
};

constexpr StackFacts kMegatronCore{
    "megatron-core", 1, true,
    "its recipes shard the optimizer, and split the sequence with tensor parallelism (README of Megatron-LM)"};
constexpr StackFacts kMegatron2021{"megatron-2021", 0, false, "older than both (arXiv 2104.04473, arXiv 2205.05198)"};
constexpr StackFacts kMegatronDeepSpeed{"megatron-deepspeed", 0, false, "ZeRO is off unless its stage is given"};
constexpr StackFacts kFsdp{"fsdp", 3, true, "fully sharded by name; torch's tensor-parallel plans split the sequence"};

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
    FamilyStack{"torchtitan", &kFsdp},
    FamilyStack{"automodel", &kFsdp},
    FamilyStack{"kempner", &kFsdp},
    FamilyStack{"llama3_405b", &kFsdp},
};

}  // namespace

const ModelFacts* model_facts(std::string_view model) {
  const std::string name = lower_case(model);
  const ModelFacts* best = nullptr;
  std::size_t longest = 0;
  for (const auto& facts : all_models()) {
    for (const auto prefix : facts.prefixes) {
      if (prefix.size() > longest && name.starts_with(prefix)) {
        best = &facts;
        longest = prefix.size();
      }
    }
  }
  return best;
}

std::string known_model_prefixes() {
  std::vector<std::string_view> names;
  for (const auto& facts : all_models()) { names.insert(names.end(), facts.prefixes.begin(), facts.prefixes.end()); }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::span<const MachineFacts> machine_facts() { return kMachines; }

std::string_view cluster_name(std::string_view gpu_type) {
  const auto it = std::find_if(kMachines.begin(), kMachines.end(),
                               [&](const MachineFacts& machine) { return machine.gpu_type == gpu_type; });
  return it == kMachines.end() ? std::string_view{} : it->cluster;
}

const StackFacts& stack_of(std::string_view family) {
  const FamilyStack* best = nullptr;
  for (const auto& entry : kFamilies) {
    if (family.starts_with(entry.prefix) && (best == nullptr || entry.prefix.size() > best->prefix.size())) {
      best = &entry;
    }
  }
  return best == nullptr ? kMegatronCore : *best->stack;
}

}  // namespace orrery::validate
