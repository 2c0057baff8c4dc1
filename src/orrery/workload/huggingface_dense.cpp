// Hugging Face families: dense decoders after the first seven.
#include <array>

#include "orrery/workload/huggingface_families.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Record;

// ---- Qwen3: no biases, queries and keys normalised -----------------------------------------------------------------

Record<Fields> qwen3_record() {
  return llama_like("qwen3", "Qwen3")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize)
      .optional("use_sliding_window", &Fields::use_sliding_window, "some layers use the window")
      .optional("max_window_layers", &Fields::full_layers, "first layers that have full attention", kFrom0)
      .optional("layer_types", &Fields::layer_types, "full or sliding attention, per layer");
}

Fields qwen3_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 32;
  fields.head_dim = 128;
  fields.sliding_window = 4096;
  fields.full_layers = 28;
  return fields;
}

void qwen3_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_windows(fields, model);
  model.qk_norm = true;
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
}

// ---- Gemma ---------------------------------------------------------------------------------------------------------

Record<Fields> gemma_record() {
  return llama_like("gemma", "Gemma")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases");
}

Fields gemma_defaults() {
  Fields fields;
  fields.activation = "gelu_pytorch_tanh";
  fields.tied = true;
  fields.kv_heads = 16;
  fields.head_dim = 256;
  return fields;
}

void gemma_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
}

Record<Fields> gemma_with_windows(const char* model_type, const char* doc) {
  return Record<Fields>(model_type, doc)
      .optional("hidden_activation", &Fields::activation, "activation function of the MLP")
      .optional("attention_dropout", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize)
      .optional("layer_types", &Fields::layer_types, "full or sliding attention, per layer");
}

Record<Fields> gemma2_record() { return gemma_with_windows("gemma2", "Gemma 2"); }

Fields gemma2_defaults() {
  Fields fields = gemma_defaults();
  fields.kv_heads = 4;
  fields.sliding_window = 4096;
  fields.use_sliding_window = true;
  fields.window_period = 2;
  return fields;
}

void gemma2_shape(const Fields& fields, Model& model) {
  gemma_shape(fields, model);
  shape_windows(fields, model);
  model.post_norms = true;
}

Record<Fields> gemma3_record() {
  return gemma_with_windows("gemma3_text", "Gemma 3")
      .optional("sliding_window_pattern", &Fields::window_period, "every n-th layer has full attention", kFrom1)
      .optional("use_bidirectional_attention", &Fields::bidirectional, "attention is not causal");
}

Fields gemma3_defaults() {
  Fields fields = gemma2_defaults();
  fields.window_period = 6;
  return fields;
}

std::string gemma3_unsupported(const Fields& fields) {
  return fields.bidirectional ? "\"use_bidirectional_attention\": true is not built yet" : windows(fields).unsupported;
}

void gemma3_shape(const Fields& fields, Model& model) {
  gemma2_shape(fields, model);
  model.qk_norm = true;
}

// What published files leave out: Gemma3TextConfig's defaults (google/gemma-3-4b has five keys in its text_config).
constexpr std::array kGemma3Fallbacks = {Fallback{"vocab_size", 262'208}, Fallback{"num_attention_heads", 8},
                                         Fallback{"max_position_embeddings", 131'072}};

// ---- Phi -----------------------------------------------------------------------------------------------------------

Record<Fields> phi_record() {
  return llama_like("phi", "Phi-1 to Phi-2")
      .optional("resid_pdrop", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("qk_layernorm", &Fields::qk_norm, "queries and keys are normalised per head");
}

Fields phi_defaults() {
  Fields fields;
  fields.activation = "gelu_new";
  return fields;
}

void phi_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::rotary;
  model.parallel_residual = model.shared_norm = true;
  model.qk_norm = fields.qk_norm;
  all_biases(model);
}

Record<Fields> phi3_record() {
  return llama_like("phi3", "Phi-3 and Phi-4")
      .optional("resid_pdrop", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize);
}

Fields phi3_defaults() {
  Fields fields = llama_defaults();
  fields.use_sliding_window = true;
  return fields;
}

void phi3_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_windows(fields, model);
}

// ---- Falcon --------------------------------------------------------------------------------------------------------

Record<Fields> falcon_record() {
  return Record<Fields>("falcon", "Falcon")
      .optional("activation", &Fields::activation, "activation function of the MLP")
      .optional("hidden_dropout", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("attention_dropout", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("alibi", &Fields::alibi, "ALiBi instead of rotary positions")
      .optional("bias", &Fields::biases, "projections have biases")
      .optional("multi_query", &Fields::multi_query, "multi-query attention: one key-value head")
      .optional("parallel_attn", &Fields::parallel_residual, "attention and MLP in parallel")
      .optional("new_decoder_architecture", &Fields::grouped, "grouped-query attention, attention and MLP in parallel")
      .optional("num_ln_in_parallel_attn", &Fields::norms, "norms of a layer with attention and MLP in parallel",
                kSize);
}

Fields falcon_defaults() {
  Fields fields;
  fields.activation = "gelu";
  fields.tied = true;
  fields.biases = false;
  fields.parallel_residual = true;
  return fields;
}

// Key-value heads have an effect only with grouped queries, or with one per query head.
void falcon_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = fields.alibi ? Position::alibi : Position::rotary;
  if (!fields.grouped) { model.kv_heads = fields.multi_query ? 1 : model.heads; }
  model.parallel_residual = fields.grouped || fields.parallel_residual;
  model.shared_norm = model.parallel_residual && fields.norms.value_or(fields.grouped ? 2 : 1) == 1;
  if (fields.biases) { all_biases(model); }
}

constexpr SizeKeys kFalconKeys{"num_hidden_layers",
                               "hidden_size",
                               "num_attention_heads",
                               "vocab_size",
                               "max_position_embeddings",
                               "ffn_hidden_size",
                               "num_kv_heads",
                               {},
                               true};
constexpr std::array kFalconAliases = {Alias{"n_layer", "num_hidden_layers"}, Alias{"n_head", "num_attention_heads"},
                                       Alias{"n_head_kv", "num_kv_heads"}, Alias{"n_embed", "hidden_size"}};
constexpr std::array kFalconFallbacks = {Fallback{"max_position_embeddings", 2'048}};

// ---- StarCoder -----------------------------------------------------------------------------------------------------

Record<Fields> bigcode_record() {
  return Record<Fields>("gpt_bigcode", "StarCoder and SantaCoder")
      .optional("activation_function", &Fields::activation, "activation function of the MLP")
      .optional("resid_pdrop", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("attn_pdrop", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("multi_query", &Fields::multi_query, "multi-query attention: one key-value head")
      .optional("add_cross_attention", &Fields::cross_attention, "the decoder of an encoder-decoder model");
}

Fields bigcode_defaults() {
  Fields fields;
  fields.activation = "gelu_pytorch_tanh";
  fields.hidden_dropout = fields.attention_dropout = 0.1;
  fields.tied = true;
  return fields;
}

std::string bigcode_unsupported(const Fields& fields) {
  return fields.cross_attention ? "\"add_cross_attention\": true is not built yet" : "";
}

void bigcode_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::learned;
  if (fields.multi_query) { model.kv_heads = 1; }
  all_biases(model);
}

constexpr SizeKeys kBigcodeKeys{"n_layer", "n_embd", "n_head", "vocab_size", "n_positions", "n_inner", {}, {}, true};
constexpr std::array kBigcodeAliases = {Alias{"num_hidden_layers", "n_layer"}, Alias{"hidden_size", "n_embd"},
                                        Alias{"num_attention_heads", "n_head"},
                                        Alias{"max_position_embeddings", "n_positions"}};

Record<Fields> starcoder2_record() {
  return llama_like("starcoder2", "StarCoder 2")
      .optional("residual_dropout", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("use_bias", &Fields::biases, "projections have biases")
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize);
}

Fields starcoder2_defaults() {
  Fields fields;
  fields.activation = "gelu_pytorch_tanh";
  fields.tied = true;
  fields.kv_heads = 2;
  fields.use_sliding_window = true;
  return fields;
}

void starcoder2_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::rotary;
  shape_windows(fields, model);
  if (fields.biases) { all_biases(model); }
}

// ---- Granite: a Llama with factors on what flows between its parts -------------------------------------------------

Record<Fields> granite_record() {
  return llama_like("granite", "Granite")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("mlp_bias", &Fields::mlp_bias, "the MLP's projections have biases");
}

void granite_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
  model.mlp_bias = fields.mlp_bias;
}

// ---- OLMo 2: norms after attention and MLP instead of before, queries and keys normalised over all heads ------------

Record<Fields> olmo2_record() {
  return llama_like("olmo2", "OLMo 2")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases");
}

void olmo2_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
  model.qk_norm = model.qk_norm_wide = true;
  model.pre_norms = false;
  model.post_norms = true;
}

// The activation under its other name; the library uses tanh-GELU in both cases. Scale of queries: no cost.
constexpr std::array<std::string_view, 1> kGemmaActivation = {"hidden_activation"};
constexpr std::array<std::string_view, 2> kGemma2Idle = {"hidden_act", "query_pre_attn_scalar"};

const std::array kDense = {
    Family{"qwen3", kLlamaKeys, {}, qwen3_record, qwen3_defaults, windows_unsupported, qwen3_shape},
    with_keys({"gemma", kLlamaKeys, {}, gemma_record, gemma_defaults, anything, gemma_shape}, kGemmaActivation),
    with_keys({"gemma2",
               kLlamaKeys,
               {},
               gemma2_record,
               gemma2_defaults,
               windows_unsupported,
               gemma2_shape,
               "hidden_activation"},
              kGemma2Idle),
    with_keys({"gemma3",
               kLlamaKeys,
               {},
               gemma3_record,
               gemma3_defaults,
               gemma3_unsupported,
               gemma3_shape,
               "hidden_activation",
               kGemma3Fallbacks,
               "text_config",
               nullptr,
               nullptr,
               {},
               gemma3_tower},
              kGemma2Idle),
    with_keys({"gemma3_text",
               kLlamaKeys,
               {},
               gemma3_record,
               gemma3_defaults,
               gemma3_unsupported,
               gemma3_shape,
               "hidden_activation",
               kGemma3Fallbacks},
              kGemma2Idle),
    Family{"phi", kLlamaKeys, {}, phi_record, phi_defaults, anything, phi_shape},
    Family{"phi3", kLlamaKeys, {}, phi3_record, phi3_defaults, anything, phi3_shape},
    Family{"falcon", kFalconKeys, kFalconAliases, falcon_record, falcon_defaults, anything, falcon_shape, "activation",
           kFalconFallbacks},
    Family{"gpt_bigcode", kBigcodeKeys, kBigcodeAliases, bigcode_record, bigcode_defaults, bigcode_unsupported,
           bigcode_shape, "activation_function"},
    Family{"starcoder2", kLlamaKeys, {}, starcoder2_record, starcoder2_defaults, anything, starcoder2_shape},
    Family{"granite", kLlamaKeys, {}, granite_record, llama_defaults, anything, granite_shape},
    Family{"olmo2", kLlamaKeys, {}, olmo2_record, llama_defaults, anything, olmo2_shape},
};

}  // namespace

std::span<const Family> dense_families() { return kDense; }

}  // namespace orrery::workload::huggingface
