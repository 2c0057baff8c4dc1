// Models by name. Sources are repository:path@commit, read 2026-11.
#include <vector>

#include "orrery/validate/facts.hpp"

namespace orrery::validate {

namespace {

using workload::Activation;
using workload::Model;
using workload::Normalisation;
using workload::Position;

// GPT-2's layer: biases everywhere, learned positions, the embedding's weights again in the head.
Model gpt(double dropout, std::int64_t vocab) {
  Model model;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.tied_embeddings = true;
  model.dropout = dropout;
  model.vocab = vocab;
  return model;
}

Model gpt_neox() {
  Model model = gpt(0.0, 50432);
  model.position = Position::rotary;
  model.tied_embeddings = false;
  model.parallel_residual = true;
  return model;
}

// One norm for attention and MLP, biases of the MLP only.
Model gpt_j() {
  Model model = gpt(0.0, 50400);
  model.position = Position::rotary;
  model.tied_embeddings = false;
  model.parallel_residual = model.shared_norm = true;
  model.qkv_bias = model.attention_output_bias = false;
  return model;
}

Model falcon() {
  Model model = gpt_j();
  model.vocab = 65024;
  model.tied_embeddings = true;
  model.mlp_bias = false;
  model.shared_norm = false;
  return model;
}

Model bloom() {
  Model model = gpt(0.1, 250880);
  model.position = Position::alibi;
  model.embedding_norm = true;
  return model;
}

Model llama(std::int64_t vocab) {
  Model model;
  model.norm = Normalisation::rmsnorm;
  model.activation = Activation::silu;
  model.position = Position::rotary;
  model.gated_mlp = true;
  model.vocab = vocab;
  return model;
}

Model qwen2() {
  Model model = llama(151936);
  model.qkv_bias = true;
  return model;
}

Model qwen3() {
  Model model = llama(151936);
  model.qk_norm = true;
  model.head_dim = 128;
  return model;
}

Model nemotron4() {
  Model model;
  model.activation = Activation::relu;
  model.position = Position::rotary;
  model.vocab = 256000;
  return model;
}

// The same with its sizes, which a row may leave out.
Model sized(Model model, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  return model;
}

// A kind of network; the row has its sizes.
std::vector<ModelFacts> kinds() {
  return {
      {.prefixes = {"gpt", "megatron"},
       .network = gpt(0.1, 50257),
       .source =
           "NVIDIA/Megatron-LM:megatron/arguments.py@00129014dc: MLP of 4 hidden, dropouts 0.1 by default; GPT-2's "
           "vocabulary; learned positions, biases and shared embeddings of GPT-2"},
      {.prefixes = {"gpt3-"},
       .network = gpt(0.0, 51200),
       .source = "mlcommons/training:large_language_model/megatron-lm/run_gpt3.sh@52b7253d85: as GPT, both dropouts 0; "
                 "vocabulary: unverified, of the benchmark's tokenizer"},
      {.prefixes = {"gpt-neox"}, .network = gpt_neox(), .source = "unverified: arXiv 2204.06745, from memory"},
      {.prefixes = {"gpt-j"},
       .network = gpt_j(),
       .source = "huggingface/transformers:src/transformers/models/gptj: parallel residual, one norm; unverified, from "
                 "memory"},
      {.prefixes = {"falcon-180b"},
       .network = falcon(),
       .source = "huggingface/transformers:src/transformers/models/falcon: two norms, no biases; unverified, from "
                 "memory"},
      {.prefixes = {"bloom"},
       .network = bloom(),
       .source =
           "bigscience-workshop/bigscience:train/tr11-176B-ml/tr11-176B-ml.slurm@003b25057e; Megatron's dropouts, "
           "which it leaves alone"},
      {.prefixes = {"mpt-"},
       .network = gpt(0.0, 50368),
       .source = "mosaicml/llm-foundry:llmfoundry/models/mpt/configuration_mpt.py@0085285a95 and "
                 "scripts/train/yamls/pretrain/mpt-7b.yaml@15fb4ffaa6: defaults, no dropout, learned positions (no "
                 "ALiBi unless asked for); parameter counts agree with its scripts/train/benchmarking/README.md"},
      {.prefixes = {"llama2", "llama-2", "llama-7b", "llama-13b", "llama-30b", "llama-33b", "llama-65b", "llama-70b",
                    "codellama", "code-llama", "mistral", "vicuna"},
       .network = llama(32000),
       .ffn_per_hidden = 8.0 / 3.0,
       .ffn_multiple = 256,
       .source = "NVIDIA/NeMo:nemo/collections/llm/gpt/model/llama.py (7B: 4096 -> 11008, 13B: 5120 -> 13824)"},
      {.prefixes = {"llama3", "llama-3"},
       .network = llama(128256),
       .ffn_per_hidden = 3.5,
       .source = "NVIDIA/NeMo:nemo/collections/llm/gpt/model/llama.py (70B: 8192 -> 28672)"},
      {.prefixes = {"qwen2", "qwen1.5"},
       .network = qwen2(),
       .ffn_per_hidden = 3.5,
       .source = "huggingface/transformers:src/transformers/models/qwen2: biases of queries, keys and values; widths "
                 "differ by size; unverified, from memory"},
      {.prefixes = {"qwen3-32b", "qwen3-14b", "qwen3-8b"},
       .network = qwen3(),
       .ffn_per_hidden = 3.0,
       .source = "huggingface/transformers:src/transformers/models/qwen3/configuration_qwen3.py@008e574391"},
      {.prefixes = {"nemotron"},
       .network = nemotron4(),
       .source = "NVIDIA/NeMo:nemo/collections/llm/gpt/model/nemotron.py@c341fb3801: a squared relu; vocabulary: "
                 "unverified, from memory"},
  };
}

// One network of the catalogue each.
std::vector<ModelFacts> entries() {
  return {
      {.prefixes = {"deepseekv3", "deepseek-v3-671b-a37b"},
       .catalogue = "deepseek-v3-mtp",
       .source = "NVIDIA-NeMo/Megatron-Bridge:docs/performance-summary.md says of some rows \"w/o MTP\": the others "
                 "train its MTP module"},
      {.prefixes = {"deepseekv3-(w/o-mtp)", "deepseek-v3", "deepseek-r1", "single-moe-layer-deepseek"},
       .catalogue = "deepseek-v3",
       .source = "as above; NeMo Automodel builds the network without it: unverified, from memory"},
      {.prefixes = {"kimi-k2"}, .catalogue = "kimi-k2"},
      {.prefixes = {"gpt-oss-120b"}, .catalogue = "gpt-oss-120b"},
      {.prefixes = {"qwen3-30b-a3b"}, .catalogue = "qwen3-30b-a3b"},
      {.prefixes = {"qwen3-235b-a22b"}, .catalogue = "qwen3-235b-a22b"},
      {.prefixes = {"qwen2.5-7b"}, .catalogue = "qwen2.5-7b"},
      {.prefixes = {"mixtral-8x7b", "single-moe-layer-mixtral-8x7b"}, .catalogue = "mixtral-8x7b"},
      {.prefixes = {"mixtral-8x22b"}, .catalogue = "mixtral-8x22b"},
      {.prefixes = {"dlrm-dcnv2"}, .catalogue = "dlrm-dcnv2"},
      {.prefixes = {"dlrm-(mlperf-v1"}, .catalogue = "dlrm-criteo-1tb"},
  };
}

std::vector<ModelFacts> not_modelled() {
  constexpr std::string_view kRecommender = "recommender without published embedding tables";
  constexpr std::string_view kStateSpace = "state-space layers (Mamba): the rows do not state their shape";
  return {
      {.prefixes = {"dlrm"}, .skipped = kRecommender},
      {.prefixes = {"nemotron-3-", "nemotron-v3"},
       .skipped = kStateSpace,
       .source = "NVIDIA Nemotron 3 white paper: a hybrid of Mamba-2, attention and experts; unverified, from memory"},
  };
}

// Names that stand for one size, which tables do not repeat.
std::vector<ModelFacts> known_sizes() {
  return {
      {.prefixes = {"gpt2-52b"},
       .network = sized(gpt(0.1, 50257), 64, 8192, 64),
       .source = "unverified: bigscience-workshop/bigscience: experiments/gpt2.md, from memory; 12 x 64 x 8192^2 = 52 "
                 "billion weights"},
      {.prefixes = {"gpt3-5b"},
       .network = sized(gpt(0.0, 51200), 24, 4096, 32),
       .source = "unverified: NVIDIA/NeMo-Framework-Launcher: conf/training/gpt3/5b.yaml, from memory"},
      {.prefixes = {"gpt3-20b"},
       .network = sized(gpt(0.0, 51200), 44, 6144, 48),
       .source =
           "unverified: NVIDIA/NeMo-Framework-Launcher: conf/training/gpt3/20b.yaml, from memory; 12 x 44 x 6144^2 "
           "= 20 billion weights"},
      {.prefixes = {"gpt3-40b"},
       .network = sized(gpt(0.0, 51200), 48, 8192, 64),
       .source = "unverified: NVIDIA/NeMo-Framework-Launcher: conf/training/gpt3/40b.yaml, from memory"},
      {.prefixes = {"nemotron-22b"},
       .network = sized(nemotron4(), 40, 6144, 48),
       .source = "unverified: NVIDIA/NeMo: Nemotron3Config22B, from memory; 40 x (4 + 8) x 6144^2 and two tables of "
                 "256000 are 21 billion weights"},
  };
}

}  // namespace

const ModelFacts& facts_of_shape(bool grouped_or_odd_width) {
  static const ModelFacts modern{.network = llama(128256),
                                 .ffn_per_hidden = 8.0 / 3.0,
                                 .ffn_multiple = 256,
                                 .source = "what most open models since Llama have in common"};
  static const ModelFacts older{.network = gpt(0.0, 50257), .source = "GPT-2's layer, without dropout"};
  return grouped_or_odd_width ? modern : older;
}

std::span<const ModelFacts> all_model_facts() {
  static const std::vector<ModelFacts> table = [] {
    std::vector<ModelFacts> all = kinds();
    for (auto part : {known_sizes(), entries(), not_modelled()}) { all.insert(all.end(), part.begin(), part.end()); }
    return all;
  }();
  return table;
}

}  // namespace orrery::validate
