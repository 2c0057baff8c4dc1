// Hugging Face families with layers other than attention: Mamba, Mamba-2, Jamba, Nemotron-H, Qwen3-Next.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/workload/huggingface_families.hpp"
#include "orrery/workload/huggingface_keys.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Node;
using config::Record;

constexpr Count kNoLimit = 1'048'576;  // a state has no longest sequence; nothing has this many rows

// ---- Mamba and Mamba-2: every layer is a mixer ---------------------------------------------------------------------

Record<Fields> mamba_record() {
  return Record<Fields>("mamba", "Mamba and Mamba-2")
      .optional("hidden_act", &Fields::activation, "activation function after the convolution")
      .optional("use_bias", &Fields::biases, "projections have biases")
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights");
}

Fields mamba_defaults() {
  Fields fields = llama_defaults();
  fields.max_seq = kNoLimit;
  fields.heads = 1;
  fields.biases = false;
  fields.tied = true;
  return fields;
}

Fields mamba2_defaults() {
  Fields fields = mamba_defaults();
  fields.tied = false;
  return fields;
}

std::string no_biases(const Fields& fields) {
  return fields.biases ? "\"use_bias\": true is not built yet for state-space layers" : "";
}

void mamba_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::rmsnorm;
  model.position = Position::none;
  model.ffn = 0;
  constexpr Count kTooMany = 100'000;  // layers that are refused anyway
  model.pattern.assign(static_cast<std::size_t>(std::min(fields.layers, kTooMany)), 'M');
}

// The step's rank may be "auto".
Count step_rank(const Node& node, std::string_view key, Count hidden) { return count(node, {key}, (hidden + 15) / 16); }

Count expanded(const Node& node, std::string_view key, Count hidden) {
  return static_cast<Count>(
      std::min(number(node, {key}, 2.0) * static_cast<double>(hidden), static_cast<double>(kMost)));
}

void finish_mamba(const Node& node, Model& model) {
  Mixer& mixer = model.mixer;
  mixer.kind = MixerKind::mamba;
  mixer.inner = count(node, {"intermediate_size"}, expanded(node, "expand", model.hidden));
  mixer.state = count(node, {"state_size"}, 16);
  mixer.conv = count(node, {"conv_kernel"}, 4);
  mixer.conv_bias = flag(node, "use_conv_bias", true);
  mixer.rank = step_rank(node, "time_step_rank", model.hidden);
}

void read_mamba2(const Node& node, Model& model) {
  Mixer& mixer = model.mixer;
  mixer.kind = MixerKind::mamba2;
  mixer.heads = count(node, {"mamba_num_heads", "num_heads"}, 128);
  mixer.head_dim = count(node, {"mamba_head_dim", "head_dim"}, 64);
  mixer.state = count(node, {"ssm_state_size", "state_size"}, 128);
  mixer.groups = count(node, {"n_groups"}, 8);
  mixer.conv = count(node, {"conv_kernel"}, 4);
  mixer.conv_bias = flag(node, "use_conv_bias", true);
  mixer.chunk = count(node, {"chunk_size"}, 256);
}

constexpr SizeKeys kMambaKeys{"num_hidden_layers", "hidden_size", {}, "vocab_size", {}, {}, {}, {}, true};
constexpr SizeKeys kMamba2Keys{"num_hidden_layers", "hidden_size", "num_heads", "vocab_size", {}, {}, {},
                               "head_dim",          true};
constexpr std::array kMambaAliases = {Alias{"n_layer", "num_hidden_layers"}, Alias{"d_model", "hidden_size"}};

// ---- Jamba: Mamba and attention, MLPs and experts, in periods ------------------------------------------------------

Record<Fields> jamba_record() {
  return llama_like("jamba", "Jamba")
      .optional("num_experts", &Fields::experts, "routed experts of a layer", kSize)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("expert_layer_period", &Fields::expert_every, "every n-th layer has experts", kFrom1)
      .optional("expert_layer_offset", &Fields::first_dense, "its index in them", kFrom0)
      .optional("mamba_proj_bias", &Fields::biases, "projections of Mamba layers have biases")
      .optional("sliding_window", &Fields::sliding_window, "attention window, positions", kSize);
}

Fields jamba_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 8;
  fields.experts = 16;
  fields.experts_active = 2;
  fields.expert_every = 2;
  fields.first_dense = 1;
  fields.use_sliding_window = true;
  fields.biases = false;
  return fields;
}

std::string jamba_unsupported(const Fields& fields) {
  if (fields.biases) { return "\"mamba_proj_bias\": true is not built yet"; }
  if (fields.experts.value_or(0) > 1 && fields.first_dense != fields.expert_every - 1) {
    return fmt::format(
        "\"expert_layer_offset\": {} with \"expert_layer_period\": {} is not built yet; the last layer "
        "of a period with experts is",
        fields.first_dense, fields.expert_every);
  }
  return windows(fields).unsupported;
}

void jamba_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  shape_windows(fields, model);
  model.position = Position::none;
  if (fields.experts.value_or(0) <= 1) { return; }
  model.experts.count = *fields.experts;
  model.experts.active = fields.experts_active.value_or(0);
  model.experts.ffn = model.ffn;
  model.experts.every = fields.expert_every;
  model.experts.score_norm = false;
}

void finish_jamba(const Node& node, Model& model) {
  Mixer& mixer = model.mixer;
  mixer.kind = MixerKind::mamba;
  mixer.inner = expanded(node, "mamba_expand", model.hidden);
  mixer.state = count(node, {"mamba_d_state"}, 16);
  mixer.conv = count(node, {"mamba_d_conv"}, 4);
  mixer.conv_bias = flag(node, "mamba_conv_bias", true);
  mixer.rank = step_rank(node, "mamba_dt_rank", model.hidden);
  mixer.inner_norms = true;
  mixer.attention_every = count(node, {"attn_layer_period"}, 8);
  mixer.attention_offset = count(node, {"attn_layer_offset"}, 4);
}

constexpr std::array kJambaFallbacks = {Fallback{"max_position_embeddings", 262'144}};
constexpr std::array kJambaAliases = {Alias{"n_ctx", "max_position_embeddings"}};

// ---- Nemotron-H: each layer is a mixer, attention, an MLP or experts -----------------------------------------------

Record<Fields> nemotron_record() {
  return Record<Fields>("nemotron_h", "Nemotron-H and Nemotron 3")
      .optional("mlp_hidden_act", &Fields::activation, "activation function of the MLP")
      .optional("attention_dropout", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("hidden_dropout", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("mlp_bias", &Fields::mlp_bias, "the MLP's projections have biases")
      .optional("use_bias", &Fields::biases, "projections of Mamba layers have biases")
      .optional("n_routed_experts", &Fields::experts, "routed experts of a layer", kSizeOrNone)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("moe_intermediate_size", &Fields::expert_ffn, "inner width of a routed expert", kFrom1)
      .optional("moe_shared_expert_intermediate_size", &Fields::shared_ffn, "inner width of a shared expert", kFrom0)
      .optional("n_shared_experts", &Fields::shared_experts, "shared experts", kSizeOrNone)
      .optional("moe_latent_size", &Fields::embedding_width, "width that experts work on; null = hidden_size", kSize);
}

Fields nemotron_defaults() {
  Fields fields;
  fields.activation = "relu2";
  fields.kv_heads = 8;
  fields.biases = false;
  return fields;
}

std::string nemotron_unsupported(const Fields& fields) {
  if (fields.embedding_width) { return "\"moe_latent_size\" (experts narrower than the model) is not built yet"; }
  return no_biases(fields);
}

void nemotron_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::rmsnorm;
  model.position = Position::none;
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
  model.mlp_bias = fields.mlp_bias;
  model.experts.count = fields.experts.value_or(0);
  model.experts.active = fields.experts_active.value_or(0);
  model.experts.ffn = fields.expert_ffn;
  model.experts.shared_ffn = fields.shared_experts.value_or(1) * fields.shared_ffn;
  model.experts.score = RouterScore::sigmoid;
  model.experts.balance_bias = true;
}

void finish_nemotron(const Node& node, Model& model) {
  read_mamba2(node, model);
  model.pattern = text(node, {"hybrid_override_pattern", "hybrid_layer_pattern"});
  if (model.experts.count == 0 || model.pattern.find('E') == std::string::npos) { model.experts = {}; }
  if (model.pattern.find('M') == std::string::npos) { model.mixer = {}; }
}

constexpr std::array kNemotronAliases = {Alias{"attention_head_dim", "head_dim"}};

// ---- Qwen3-Next: gated delta rule and gated attention, experts in every layer --------------------------------------

Record<Fields> qwen3_next_record() {
  return llama_like("qwen3_next", "Qwen3-Next")
      .optional("attention_bias", &Fields::attention_bias, "the projections of attention have biases")
      .optional("num_experts", &Fields::experts, "routed experts of a layer", kSizeOrNone)
      .optional("num_experts_per_tok", &Fields::experts_active, "routed experts per token (top-k)", kSize)
      .optional("moe_intermediate_size", &Fields::expert_ffn, "inner width of a routed expert", kFrom1)
      .optional("shared_expert_intermediate_size", &Fields::shared_ffn, "inner width of the shared expert", kFrom0)
      .optional("decoder_sparse_step", &Fields::expert_every, "every n-th layer has experts", kFrom1)
      .optional("mlp_only_layers", &Fields::dense_layers, "layers without experts")
      .optional("full_attention_interval", &Fields::window_period, "every n-th layer has attention", kFrom1)
      .optional("layer_types", &Fields::layer_types, "full or linear attention, per layer");
}

Fields qwen3_next_defaults() {
  Fields fields = llama_defaults();
  fields.kv_heads = 2;
  fields.head_dim = 256;
  fields.experts = 512;
  fields.experts_active = 10;
  fields.expert_ffn = fields.shared_ffn = 512;
  fields.window_period = 4;
  return fields;
}

std::string qwen3_next_unsupported(const Fields& fields) {
  if (fields.dense_layers && !fields.dense_layers->empty()) { return "\"mlp_only_layers\" is not built yet"; }
  if (!fields.layer_types) { return {}; }
  const auto& types = *fields.layer_types;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool full = (static_cast<Count>(i) + 1) % fields.window_period == 0;
    if (types[i] == (full ? "full_attention" : "linear_attention")) { continue; }
    return fmt::format(
        "\"layer_types\" has \"{}\" for layer {}; only every n-th layer with full attention "
        "(\"full_attention_interval\": {}) is built",
        types[i], i, fields.window_period);
  }
  return {};
}

void qwen3_next_shape(const Fields& fields, Model& model) {
  llama_like_shape(model);
  model.qk_norm = true;
  model.attention_gate = true;
  model.qkv_bias = model.attention_output_bias = fields.attention_bias;
  model.mixer.attention_every = fields.window_period;
  model.mixer.attention_offset = fields.window_period - 1;
  model.experts.count = fields.experts.value_or(0);
  if (model.experts.count == 0) { return; }
  model.experts.active = fields.experts_active.value_or(0);
  model.experts.ffn = fields.expert_ffn;
  model.experts.shared_ffn = fields.shared_ffn;
  model.experts.shared_gate = fields.shared_ffn > 0;
  model.experts.every = fields.expert_every;
}

void finish_qwen3_next(const Node& node, Model& model) {
  Mixer& mixer = model.mixer;
  mixer.kind = MixerKind::gated_delta;
  mixer.heads = count(node, {"linear_num_value_heads"}, 32);
  mixer.head_dim = count(node, {"linear_value_head_dim"}, 128);
  mixer.key_heads = count(node, {"linear_num_key_heads"}, 16);
  mixer.key_dim = count(node, {"linear_key_head_dim"}, 128);
  mixer.conv = count(node, {"linear_conv_kernel_dim"}, 4);
  mixer.conv_bias = false;
  mixer.chunk = 64;  // of flash-linear-attention's kernels
}

constexpr std::array kMambaOwn = std::to_array<std::string_view>(
    {"intermediate_size", "expand", "state_size", "conv_kernel", "use_conv_bias", "time_step_rank"});
constexpr std::array kMamba2Own = std::to_array<std::string_view>(
    {"intermediate_size", "expand", "state_size", "n_groups", "conv_kernel", "use_conv_bias", "chunk_size"});
constexpr std::array kJambaOwn =
    std::to_array<std::string_view>({"mamba_expand", "mamba_d_state", "mamba_d_conv", "mamba_conv_bias",
                                     "mamba_dt_rank", "attn_layer_period", "attn_layer_offset"});
constexpr std::array kNemotronOwn = std::to_array<std::string_view>(
    {"expand", "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel", "use_conv_bias",
     "chunk_size", "hybrid_override_pattern", "hybrid_layer_pattern", "mamba_proj_bias", "n_group", "topk_group",
     "sliding_window"});
constexpr std::array kQwen3NextOwn =
    std::to_array<std::string_view>({"linear_num_value_heads", "linear_value_head_dim", "linear_num_key_heads",
                                     "linear_key_head_dim", "linear_conv_kernel_dim", "use_sliding_window"});

Family hybrid(Family family, void (*finish)(const Node&, Model&), std::span<const std::string_view> keys) {
  family.finish = finish;
  family.finish_keys = keys;
  return family;
}

const std::array kHybrids = {
    hybrid({"mamba", kMambaKeys, kMambaAliases, mamba_record, mamba_defaults, no_biases, mamba_shape}, finish_mamba,
           kMambaOwn),
    hybrid({"mamba2", kMamba2Keys, kMambaAliases, mamba_record, mamba2_defaults, no_biases, mamba_shape}, read_mamba2,
           kMamba2Own),
    hybrid({"jamba", kLlamaKeys, kJambaAliases, jamba_record, jamba_defaults, jamba_unsupported, jamba_shape,
            "hidden_act", kJambaFallbacks},
           finish_jamba, kJambaOwn),
    hybrid({"nemotron_h", kLlamaKeys, kNemotronAliases, nemotron_record, nemotron_defaults, nemotron_unsupported,
            nemotron_shape, "mlp_hidden_act"},
           finish_nemotron, kNemotronOwn),
    hybrid({"qwen3_next",
            kLlamaKeys,
            {},
            qwen3_next_record,
            qwen3_next_defaults,
            qwen3_next_unsupported,
            qwen3_next_shape},
           finish_qwen3_next, kQwen3NextOwn),
};

}  // namespace

std::span<const Family> hybrid_families() { return kHybrids; }

}  // namespace orrery::workload::huggingface
