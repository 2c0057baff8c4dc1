#include "orrery/workload/huggingface_families.hpp"

#include <array>

#include <fmt/format.h>

namespace orrery::workload::huggingface {
namespace {

using config::Record;

Record<Fields> gpt2_record() {
  return Record<Fields>("gpt2", "GPT-2")
      .optional("activation_function", &Fields::activation, "activation function of the MLP")
      .optional("resid_pdrop", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("attn_pdrop", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("add_cross_attention", &Fields::cross_attention, "the decoder of an encoder-decoder model");
}

Fields gpt2_defaults() {
  Fields fields;
  fields.activation = "gelu_new";
  fields.hidden_dropout = fields.attention_dropout = 0.1;
  fields.tied = true;
  return fields;
}

std::string gpt2_unsupported(const Fields& fields) {
  return fields.cross_attention ? "\"add_cross_attention\": true is not built yet" : "";
}

void gpt2_shape(const Fields&, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::learned;
  all_biases(model);
}

Record<Fields> gpt_neox_record() {
  return Record<Fields>("gpt_neox", "GPT-NeoX")
      .optional("hidden_act", &Fields::activation, "activation function of the MLP")
      .optional("hidden_dropout", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("attention_dropout", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("use_parallel_residual", &Fields::parallel_residual, "attention and MLP in parallel");
}

Fields gpt_neox_defaults() {
  Fields fields;
  fields.activation = "gelu";
  fields.attention_bias = true;
  fields.parallel_residual = true;
  return fields;
}

void gpt_neox_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::rotary;
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
  model.mlp_bias = true;
  model.parallel_residual = fields.parallel_residual;
}

Record<Fields> opt_record() {
  return Record<Fields>("opt", "OPT")
      .optional("activation_function", &Fields::activation, "activation function of the MLP")
      .optional("dropout", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("attention_dropout", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("enable_bias", &Fields::biases, "projections have biases")
      .optional("word_embed_proj_dim", &Fields::embedding_width, "width of the embedding", kSize)
      .optional("do_layer_norm_before", &Fields::norm_first, "norms come before their blocks")
      .optional("layer_norm_elementwise_affine", &Fields::norm_weights, "norms have weights")
      .optional("_remove_final_layer_norm", &Fields::no_final_norm, "no norm before the head");
}

Fields opt_defaults() {
  Fields fields;
  fields.activation = "relu";
  fields.hidden_dropout = 0.1;
  fields.tied = true;
  return fields;
}

// Only OPT-350M has these: its embedding is half as wide as its layers, and its norms come after them.
std::string opt_unsupported(const Fields& fields) {
  if (fields.embedding_width && *fields.embedding_width != fields.hidden) {
    return fmt::format(
        "\"word_embed_proj_dim\": {} with \"hidden_size\": {} (an embedding narrower than the layers, "
        "as in opt-350m) is not built yet",
        *fields.embedding_width, fields.hidden);
  }
  if (!fields.norm_first) { return "\"do_layer_norm_before\": false (norms after the blocks) is not built yet"; }
  if (!fields.norm_weights) { return "\"layer_norm_elementwise_affine\": false is not built yet"; }
  return {};
}

void opt_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::learned;
  model.position_rows = model.max_seq + 2;  // the first two rows are for padding
  if (fields.biases) { all_biases(model); }
  model.final_norm = !fields.no_final_norm;
}

Record<Fields> bloom_record() {
  return Record<Fields>("bloom", "BLOOM")
      .optional("seq_length", &Fields::max_seq, "longest sequence in training", kFrom1)
      .optional("hidden_dropout", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("attention_dropout", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights");
}

Fields bloom_defaults() {
  Fields fields;
  fields.activation = "gelu";
  fields.max_seq = 2048;  // alibi has no position table; the library has no key, published files have seq_length
  fields.tied = true;
  return fields;
}

void bloom_shape(const Fields&, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::alibi;
  model.embedding_norm = true;
  all_biases(model);
}

// Llama, Mistral and Qwen2 are one architecture with different biases.
Record<Fields> llama_record() {
  return llama_like("llama", "Llama")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("mlp_bias", &Fields::mlp_bias, "the MLP's projections have biases");
}

void llama_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
  model.mlp_bias = fields.mlp_bias;
}

Record<Fields> mistral_record() {
  return llama_like("mistral", "Mistral")
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize);
}

Fields mistral_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 8;
  fields.sliding_window = 4096;
  fields.use_sliding_window = true;
  return fields;
}

void mistral_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_windows(fields, model);
}

Record<Fields> qwen2_record() {
  return llama_like("qwen2", "Qwen2 and Qwen2.5")
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize)
      .optional("use_sliding_window", &Fields::use_sliding_window, "some layers use the window")
      .optional("max_window_layers", &Fields::full_layers, "first layers that have full attention", kFrom0)
      .optional("layer_types", &Fields::layer_types, "full or sliding attention, per layer");
}

Fields qwen2_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 32;
  fields.sliding_window = 4096;
  fields.full_layers = 28;
  return fields;
}

void qwen2_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_windows(fields, model);
  model.qkv_bias = true;
}

// The language model's keys are at the top of published files, and under "text_config" in files of later versions.
Family qwen_vl(std::string_view model_type, Result<Tower> (*tower)(const config::Node&, const config::Node&, Count)) {
  static constexpr std::array<std::string_view, 1> kRead = {"vision_config"};
  return Family{.model_type = model_type,
                .keys = kLlamaKeys,
                .aliases = {},
                .record = qwen2_record,
                .defaults = qwen2_defaults,
                .unsupported = windows_unsupported,
                .shape = qwen2_shape,
                .nested = "text_config",
                .finish_keys = kRead,
                .tower = tower};
}

constexpr SizeKeys kGpt2Keys{"n_layer", "n_embd", "n_head", "vocab_size", "n_positions", "n_inner", {}, {}, true};
constexpr SizeKeys kNeoxKeys{"num_hidden_layers",       "hidden_size",      "num_attention_heads", "vocab_size",
                             "max_position_embeddings", "intermediate_size"};
constexpr SizeKeys kOptKeys{"num_hidden_layers",       "hidden_size", "num_attention_heads", "vocab_size",
                            "max_position_embeddings", "ffn_dim"};
constexpr SizeKeys kBloomKeys{"n_layer", "hidden_size", "n_head", "vocab_size", {}, {}, {}, {}, true};

constexpr std::array kGpt2Aliases = {Alias{"num_hidden_layers", "n_layer"}, Alias{"hidden_size", "n_embd"},
                                     Alias{"num_attention_heads", "n_head"},
                                     Alias{"max_position_embeddings", "n_positions"}};
constexpr std::array kBloomAliases = {Alias{"num_hidden_layers", "n_layer"}, Alias{"n_embed", "hidden_size"},
                                      Alias{"num_attention_heads", "n_head"}};

const std::array kFirst = {
    Family{"gpt2", kGpt2Keys, kGpt2Aliases, gpt2_record, gpt2_defaults, gpt2_unsupported, gpt2_shape,
           "activation_function"},
    Family{"gpt_neox", kNeoxKeys, {}, gpt_neox_record, gpt_neox_defaults, anything, gpt_neox_shape},
    Family{"opt", kOptKeys, {}, opt_record, opt_defaults, opt_unsupported, opt_shape, "activation_function"},
    Family{"bloom", kBloomKeys, kBloomAliases, bloom_record, bloom_defaults, anything, bloom_shape},
    Family{"llama", kLlamaKeys, {}, llama_record, llama_defaults, anything, llama_shape},
    Family{"mistral", kLlamaKeys, {}, mistral_record, mistral_defaults, windows_unsupported, mistral_shape},
    Family{"qwen2", kLlamaKeys, {}, qwen2_record, qwen2_defaults, windows_unsupported, qwen2_shape},
    qwen_vl("qwen2_vl", qwen2_vl_tower),
    qwen_vl("qwen2_5_vl", qwen2_5_vl_tower),
};

constexpr std::array<std::string_view, 5> kPlanned = {
    "cohere", "dbrx", "gptj", "mpt", "stablelm",
};

std::vector<Family> all_families() {
  std::vector<Family> all(kFirst.begin(), kFirst.end());
  for (const auto more : {dense_families(), expert_families(), hybrid_families(), encoder_families()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> all = all_families();
  return all;
}

std::span<const std::string_view> planned_model_types() { return kPlanned; }

}  // namespace orrery::workload::huggingface
