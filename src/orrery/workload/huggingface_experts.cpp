// Hugging Face families: mixtures of experts, with latent attention where they have it.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/workload/huggingface_families.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Record;

void shape_experts(const Fields& fields, Model& model) {
  model.experts.count = fields.experts.value_or(0);
  if (model.experts.count == 0) { return; }
  model.experts.active = fields.experts_active.value_or(0);
  model.experts.ffn = fields.expert_ffn;
  model.experts.shared_ffn = fields.shared_ffn;
  model.experts.first_dense = fields.first_dense;
  model.experts.every = fields.expert_every;
}

// ---- Mixtral, Phi-3.5-MoE, gpt-oss: every layer, experts as wide as the file's MLP ---------------------------------

Record<Fields> mixtral_like(const char* model_type, const char* doc) {
  return llama_like(model_type, doc)
      .optional("num_local_experts", &Fields::experts, "routed experts of a layer", kSize)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize);
}

Record<Fields> mixtral_record() { return mixtral_like("mixtral", "Mixtral"); }

Fields mixtral_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 8;
  fields.experts = 8;
  fields.experts_active = 2;
  fields.use_sliding_window = true;
  return fields;
}

void mixtral_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_windows(fields, model);
  shape_experts(fields, model);
  model.experts.ffn = model.ffn;
}

Record<Fields> phimoe_record() {
  return mixtral_like("phimoe", "Phi-3.5-MoE")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases");
}

Fields phimoe_defaults() {
  Fields fields = mixtral_defaults();
  fields.experts = 16;
  return fields;
}

void phimoe_shape(const Fields& fields, Model& model) {
  mixtral_shape(fields, model);
  model.norm = Normalisation::layernorm;
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
}

Record<Fields> gpt_oss_record() {
  return mixtral_like("gpt_oss", "gpt-oss")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("layer_types", &Fields::layer_types, "full or sliding attention, per layer");
}

Fields gpt_oss_defaults() {
  Fields fields = mixtral_defaults();
  fields.head_dim = 64;
  fields.experts = 128;
  fields.experts_active = 4;
  fields.attention_bias = true;
  fields.sliding_window = 128;
  fields.window_period = 2;
  return fields;
}

void gpt_oss_shape(const Fields& fields, Model& model) {
  mixtral_shape(fields, model);
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
  model.mlp_bias = true;  // of experts and router
  model.attention_sinks = true;
}

// ---- Qwen's mixtures -----------------------------------------------------------------------------------------------

Record<Fields> qwen_moe(const char* model_type, const char* doc) {
  return llama_like(model_type, doc)
      .optional("num_experts", &Fields::experts, "routed experts of a layer", kSizeOrNone)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("moe_intermediate_size", &Fields::expert_ffn, "inner width of a routed expert", kFrom1)
      .optional("decoder_sparse_step", &Fields::expert_every, "every n-th layer has experts", kFrom1)
      .optional("mlp_only_layers", &Fields::dense_layers, "layers without experts")
      .optional("use_sliding_window", &Fields::use_sliding_window, "some layers use the window");
}

constexpr std::array kExpertAliases = {Alias{"num_local_experts", "num_experts"}};

// Dense layers among layers with experts can only be described if they come first.
Count leading_dense_layers(const Fields& fields) {
  auto layers = fields.dense_layers.value_or(std::vector<Count>{});
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  const auto count = static_cast<Count>(layers.size());
  const bool lead = count == 0 || (layers.front() == 0 && layers.back() == count - 1);
  return lead ? count : -1;
}

std::string qwen_moe_unsupported(const Fields& fields) {
  if (fields.use_sliding_window) { return "\"use_sliding_window\": true is not built yet for mixtures of experts"; }
  const Count dense = leading_dense_layers(fields);
  if (dense < 0 || (dense > 0 && fields.expert_every > 1)) {
    return "\"mlp_only_layers\" must list the first layers; others are not built yet";
  }
  return {};
}

void qwen_moe_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_experts(fields, model);
  if (model.has_experts()) { model.experts.first_dense = leading_dense_layers(fields); }
}

Record<Fields> qwen2_moe_record() {
  return qwen_moe("qwen2_moe", "Qwen1.5-MoE and Qwen2-MoE")
      .optional("shared_expert_intermediate_size", &Fields::shared_ffn, "inner width of the shared expert", kFrom0)
      .optional("qkv_bias", &Fields::attention_bias, "queries, keys and values have biases");
}

Fields qwen2_moe_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 16;
  fields.experts = 60;
  fields.experts_active = 4;
  fields.expert_ffn = 1408;
  fields.shared_ffn = 5632;
  fields.attention_bias = true;
  return fields;
}

void qwen2_moe_shape(const Fields& fields, Model& model) {
  qwen_moe_shape(fields, model);
  model.qkv_bias = fields.attention_bias;
  model.experts.shared_gate = model.experts.shared_ffn > 0;
}

Record<Fields> qwen3_moe_record() {
  return qwen_moe("qwen3_moe", "Qwen3-MoE")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases");
}

Fields qwen3_moe_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 4;
  fields.experts = 128;
  fields.experts_active = 8;
  fields.expert_ffn = 768;
  return fields;
}

void qwen3_moe_shape(const Fields& fields, Model& model) {
  qwen_moe_shape(fields, model);
  model.qk_norm = true;
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
}

// ---- DeepSeek-V2, -V3 and their relatives --------------------------------------------------------------------------

Record<Fields> deepseek(const char* model_type, const char* doc) {
  return llama_like(model_type, doc)
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("q_lora_rank", &Fields::query_rank, "rank of the query projection; null = full rank", kSize)
      .optional("kv_lora_rank", &Fields::kv_rank, "rank of the key-value projection", kFrom1)
      .optional("qk_nope_head_dim", &Fields::nope_dim, "width of a head without rotary position", kFrom1)
      .optional("qk_rope_head_dim", &Fields::rope_dim, "width of a head with rotary position", kFrom0)
      .optional("v_head_dim", &Fields::value_dim, "width of a value head", kFrom1)
      .optional("n_routed_experts", &Fields::experts, "routed experts of a layer; null = none", kSizeOrNone)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("n_shared_experts", &Fields::shared_experts, "shared experts", kSizeOrNone)
      .optional("moe_intermediate_size", &Fields::expert_ffn, "inner width of a routed expert", kFrom1)
      .optional("first_k_dense_replace", &Fields::first_dense, "first layers without experts", kFrom0)
      .optional("n_group", &Fields::expert_groups, "expert groups (node-limited routing)", kSizeOrNone)
      .optional("topk_group", &Fields::expert_active_groups,
                "expert groups that the experts of a token are chosen from", kSizeOrNone)
      .optional("moe_layer_freq", &Fields::expert_every, "every n-th layer has experts", kFrom1)
      .optional("num_nextn_predict_layers", &Fields::mtp_layers, "multi-token prediction modules", kFrom0);
}

Record<Fields> deepseek_v2_record() { return deepseek("deepseek_v2", "DeepSeek-V2"); }
Record<Fields> deepseek_v3_record() { return deepseek("deepseek_v3", "DeepSeek-V3, -R1 and Kimi K2"); }

Fields deepseek_v2_defaults() {
  Fields fields = llama_defaults();
  fields.query_rank = 1536;
  fields.kv_rank = 512;
  fields.nope_dim = 128;
  fields.rope_dim = 64;
  fields.value_dim = 128;
  fields.experts = 64;
  fields.shared_experts = 2;
  fields.expert_ffn = 1407;
  return fields;
}

Fields deepseek_v3_defaults() {
  Fields fields = deepseek_v2_defaults();
  fields.experts = 256;
  fields.experts_active = 8;
  fields.shared_experts = 1;
  fields.expert_ffn = 2048;
  fields.first_dense = 3;
  fields.expert_groups = 8;
  fields.expert_active_groups = 4;
  return fields;
}

std::string deepseek_unsupported(const Fields& fields) {
  if (fields.attention_bias) { return "\"attention_bias\": true is not built yet for latent attention"; }
  if (fields.expert_every != 1) {
    return fmt::format("\"moe_layer_freq\": {} is not built yet; 1 is", fields.expert_every);
  }
  if (fields.experts.value_or(0) > 0 && !fields.experts_active) {
    return "required key \"num_experts_per_tok\" is missing (routed experts per token)";
  }
  return {};
}

// MTP modules are left out, as in the library: inference does not need them, and published sizes do not count them.
void deepseek_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  model.latent = {fields.query_rank.value_or(0), fields.kv_rank, fields.nope_dim, fields.rope_dim, fields.value_dim};
  shape_experts(fields, model);
  if (!model.has_experts()) { return; }
  model.experts.shared_ffn = fields.shared_experts.value_or(0) * fields.expert_ffn;
  if (fields.expert_groups.value_or(1) > 1) {  // one group is no limit
    model.experts.groups = *fields.expert_groups;
    model.experts.active_groups = fields.expert_active_groups.value_or(0);
  }
}

std::string without_mtp_layers(const Fields& fields) {
  if (fields.mtp_layers == 0) { return {}; }
  return fmt::format("without its {} MTP {} (num_nextn_predict_layers); mtp_layers of an Orrery description adds them",
                     fields.mtp_layers, fields.mtp_layers == 1 ? "module" : "modules");
}

constexpr SizeKeys kDeepseekKeys{"num_hidden_layers",       "hidden_size",      "num_attention_heads", "vocab_size",
                                 "max_position_embeddings", "intermediate_size"};

constexpr std::array<std::string_view, 1> kDeepseekIdle = {"num_key_value_heads"};  // as many as heads
// Without effect while "use_sliding_window" is false, the only value that is built.
constexpr std::array<std::string_view, 2> kQwenMoeIdle = {"sliding_window", "max_window_layers"};

Family deepseek_family(std::string_view model_type, Record<Fields> (*record)(), Fields (*defaults)(),
                       Quantized quantized_4_bit) {
  return Family{.model_type = model_type,
                .keys = kDeepseekKeys,
                .aliases = {},
                .record = record,
                .defaults = defaults,
                .unsupported = deepseek_unsupported,
                .shape = deepseek_shape,
                .note = without_mtp_layers,
                .finish_keys = kDeepseekIdle,
                .quantized_4_bit = quantized_4_bit};
}

// ---- GLM-4.5 and GLM-4.6 -------------------------------------------------------------------------------------------

Record<Fields> glm4_moe_record() {
  return llama_like("glm4_moe", "GLM-4.5 and GLM-4.6")
      .optional("attention_bias", &Fields::attention_bias, "queries, keys and values have biases")
      .optional("use_qk_norm", &Fields::qk_norm, "queries and keys are normalised per head")
      .optional("n_routed_experts", &Fields::experts, "routed experts of a layer", kSizeOrNone)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("n_shared_experts", &Fields::shared_experts, "shared experts", kSizeOrNone)
      .optional("moe_intermediate_size", &Fields::expert_ffn, "inner width of a routed expert", kFrom1)
      .optional("first_k_dense_replace", &Fields::first_dense, "first layers without experts", kFrom0)
      .optional("n_group", &Fields::expert_groups, "expert groups", kSizeOrNone)
      .optional("topk_group", &Fields::expert_active_groups, "groups that the experts of a token are chosen from",
                kSizeOrNone)
      .optional("num_nextn_predict_layers", &Fields::mtp_layers, "multi-token prediction modules", kFrom0);
}

Fields glm4_moe_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 8;
  fields.experts = 128;
  fields.experts_active = 8;
  fields.shared_experts = 1;
  fields.expert_ffn = 1408;
  fields.first_dense = 1;
  return fields;
}

void glm4_moe_shape(const Fields& fields, Model& model) {
  deepseek_shape(fields, model);
  model.latent = {};
  model.qk_norm = fields.qk_norm;
  model.qkv_bias = fields.attention_bias;
  model.experts.score = RouterScore::sigmoid;
  model.experts.balance_bias = true;
}

// ---- Llama 4: experts as wide as the file's MLP, chunks of attention in three of four layers ----

Record<Fields> llama4_record() {
  return llama_like("llama4", "Llama 4")
      .optional("num_local_experts", &Fields::experts, "routed experts of a layer", kSize)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("intermediate_size_mlp", &Fields::dense_ffn, "inner width of the MLP of layers without experts", kFrom1)
      .optional("interleave_moe_layer_step", &Fields::expert_every, "every n-th layer has experts", kFrom1)
      .optional("attention_chunk_size", &Fields::attention_chunk, "positions of a chunk of attention", kFrom0)
      .optional("no_rope_layer_interval", &Fields::window_period, "every n-th layer attends to all positions", kFrom1)
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("moe_layers", &Fields::expert_layers, "layers with experts")
      .optional("no_rope_layers", &Fields::rope_layers, "1 for each layer with rotary positions, else 0");
}

Fields llama4_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 8;
  fields.head_dim = 128;
  fields.experts = 16;
  fields.experts_active = 1;
  fields.dense_ffn = 16'384;
  fields.attention_chunk = 8192;
  fields.window_period = 4;
  return fields;
}

// The lists of layers must agree with the intervals.
std::string llama4_unsupported(const Fields& fields) {
  const auto layers = static_cast<std::size_t>(fields.layers), every = static_cast<std::size_t>(fields.expert_every);
  if (fields.expert_layers) {
    std::vector<Count> expected;
    for (std::size_t i = every - 1; i < layers; i += every) { expected.push_back(static_cast<Count>(i)); }
    if (*fields.expert_layers != expected) { return "\"moe_layers\" other than every n-th layer is not built yet"; }
  }
  if (!fields.rope_layers || fields.rope_layers->empty()) { return {}; }
  std::vector<Count> expected(layers, 1);
  const auto period = static_cast<std::size_t>(fields.window_period);
  for (std::size_t i = period - 1; i < layers; i += period) { expected[i] = 0; }
  return *fields.rope_layers == expected ? "" : "\"no_rope_layers\" other than every n-th layer is not built yet";
}

// Queries and keys are normalised without weights. A chunk is described as a window of its length.
void llama4_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_experts(fields, model);
  model.experts.ffn = model.experts.shared_ffn = model.ffn;
  model.experts.score = RouterScore::sigmoid;
  model.experts.score_norm = false;
  model.ffn = fields.expert_every > 1 ? fields.dense_ffn : 0;
  model.sliding_window = fields.attention_chunk;
  model.global_every = fields.attention_chunk > 0 ? fields.window_period : 0;
  model.rope.none_every = fields.window_period;
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
}

// Scales of attention in layers without positions; the kinds of layers that follow from the intervals.
constexpr std::array<std::string_view, 6> kLlama4Idle = {
    "attn_scale", "attn_temperature_tuning", "floor_scale", "for_llm_compressor", "layer_types", "use_qk_norm"};

Family llama4_family(std::string_view model_type) {
  return Family{.model_type = model_type,
                .keys = kLlamaKeys,
                .aliases = {},
                .record = llama4_record,
                .defaults = llama4_defaults,
                .unsupported = llama4_unsupported,
                .shape = llama4_shape,
                .nested = "text_config",
                .finish_keys = kLlama4Idle,
                .tower = llama4_tower};
}

const std::array kExperts = {
    Family{"mixtral", kLlamaKeys, {}, mixtral_record, mixtral_defaults, anything, mixtral_shape},
    Family{"phimoe", kLlamaKeys, {}, phimoe_record, phimoe_defaults, anything, phimoe_shape},
    Family{.model_type = "gpt_oss",
           .keys = kLlamaKeys,
           .aliases = {},
           .record = gpt_oss_record,
           .defaults = gpt_oss_defaults,
           .unsupported = windows_unsupported,
           .shape = gpt_oss_shape,
           .quantized_4_bit = Quantized::experts},
    with_keys({"qwen2_moe", kLlamaKeys, kExpertAliases, qwen2_moe_record, qwen2_moe_defaults, qwen_moe_unsupported,
               qwen2_moe_shape},
              kQwenMoeIdle),
    with_keys({"qwen3_moe", kLlamaKeys, kExpertAliases, qwen3_moe_record, qwen3_moe_defaults, qwen_moe_unsupported,
               qwen3_moe_shape},
              kQwenMoeIdle),
    deepseek_family("deepseek_v2", deepseek_v2_record, deepseek_v2_defaults, Quantized::all),
    deepseek_family("deepseek_v3", deepseek_v3_record, deepseek_v3_defaults, Quantized::but_qkv),
    deepseek_family("kimi_k2", deepseek_v3_record, deepseek_v3_defaults, Quantized::experts),
    Family{.model_type = "glm4_moe",
           .keys = kLlamaKeys,
           .aliases = {},
           .record = glm4_moe_record,
           .defaults = glm4_moe_defaults,
           .unsupported = anything,
           .shape = glm4_moe_shape,
           .note = without_mtp_layers},
    llama4_family("llama4"),
    llama4_family("llama4_text"),
};

}  // namespace

std::span<const Family> expert_families() { return kExperts; }

}  // namespace orrery::workload::huggingface
