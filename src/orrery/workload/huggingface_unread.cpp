// Keys of a configuration that its family does not read (a key that is null or false counts as absent), and the family
// whose keys a configuration has.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/workload/huggingface_families.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Node;

// Keys of any family without effect on the network: names, tokens, the library's switches, initial weights, losses,
// number formats of checkpoints.
constexpr std::array kIdle = std::to_array<std::string_view>({
    "activation_dropout",
    "architectures",
    "attention_dropout",
    "attention_softmax_in_fp32",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "aux_loss_alpha",
    "bias_dropout_fusion",
    "cache_implementation",
    "calc_logits_for_entire_prompt",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "do_sample",
    "dtype",
    "embd_pdrop",
    "ep_size",
    "finetuning_task",
    "fused_add_norm",
    "gradient_checkpointing",
    "hidden_dropout",
    "id2label",
    "init_std",
    "initial_context_length",
    "initializer_factor",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "layerdrop",
    "mamba_inner_layernorms",
    "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
    "masked_softmax_fusion",
    "max_length",
    "max_new_tokens",
    "min_length",
    "model_type",
    "n_ctx",
    "num_labels",
    "num_logits_to_keep",
    "num_return_sequences",
    "offset_alibi",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "quantization_config",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "return_dict",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "seq_aux",
    "skip_bias_add",
    "slow_but_exact",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "temperature",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "unk_token",
    "use_cache",
    "use_mamba_kernels",
    "use_mambapy",
    "rms_norm",
    "norm_before_gate",
    "mamba_hidden_act",
    "summary_last_dropout",
    "experts_per_token",
});

// Keys that read_details reads.
constexpr std::array kDetails = std::to_array<std::string_view>({
    "rms_norm_eps",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layernorm_epsilon",
    "norm_epsilon",
    "norm_eps",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "rope_parameters",
    "rope_theta",
    "rotary_emb_base",
    "rope_local_base_freq",
    "partial_rotary_factor",
    "rotary_pct",
    "rotary_dim",
    "no_rope_layer_interval",
    "rope_scaling",
    "original_max_position_embeddings",
    "scoring_func",
    "routed_scaling_factor",
    "norm_topk_prob",
    "topk_method",
});

template <class Names>
bool has(const Names& names, std::string_view key) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

bool is_idle(std::string_view key) {
  const auto ends = [&](std::string_view tail) { return key.ends_with(tail); };
  return key.starts_with('_') || key.starts_with("time_step_") || ends("_token_id") || ends("_token_ids") ||
         ends("_token_index") || ends("_aux_loss_coef") || has(kIdle, key);
}

std::vector<std::string> names_of(const Family& family) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (!name.empty()) { names.emplace_back(name); }
  };
  const auto record = family.record();
  for (const auto& field : record.fields()) { names.push_back(field.name); }
  const SizeKeys& keys = family.keys;
  for (const auto key :
       {keys.layers, keys.hidden, keys.heads, keys.vocab, keys.max_seq, keys.ffn, keys.kv_heads, keys.head_dim}) {
    add(key);
  }
  for (const auto& alias : family.aliases) { add(alias.other); }
  for (const auto key : family.finish_keys) { add(key); }
  return names;
}

const Node& described_part(const Node& config, const Family& family) {
  const Node* part = family.nested.empty() ? nullptr : config.find(family.nested);
  return part != nullptr && part->kind == config::Kind::mapping ? *part : config;
}

bool has_sizes(const Node& node, const Family& family) {
  const SizeKeys& keys = family.keys;
  for (const auto key : {keys.layers, keys.hidden, keys.heads, keys.vocab}) {
    if (key.empty() || node.find(key) != nullptr) { continue; }
    const bool aliased = std::any_of(family.aliases.begin(), family.aliases.end(), [&](const Alias& alias) {
      return alias.key == key && node.find(alias.other) != nullptr;
    });
    const bool has_default = std::any_of(family.fallbacks.begin(), family.fallbacks.end(),
                                         [&](const Fallback& fallback) { return fallback.key == key; });
    if (!aliased && !has_default) { return false; }
  }
  return true;
}

}  // namespace

std::vector<UnreadKey> unread_keys(const Node& config, const Family& family) {
  const Node& node = described_part(config, family);
  const auto names = names_of(family);
  std::vector<UnreadKey> unread;
  for (const auto& member : node.members) {
    const bool off = member.value.kind == config::Kind::null ||
                     (member.value.kind == config::Kind::boolean && member.value.scalar == "false");
    if (off || is_idle(member.key) || has(names, member.key) || has(kDetails, member.key)) { continue; }
    unread.push_back({member.key, nearest(member.key, names)});
  }
  return unread;
}

std::string text_of(const std::vector<UnreadKey>& keys) {
  std::string text;
  for (const auto& key : keys) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", quote(key.key));
    if (key.near) { text += fmt::format(" (did you mean {}?)", quote(*key.near)); }
  }
  return text;
}

std::string closest_family(const Node& config) {
  const Family* best = nullptr;
  std::vector<UnreadKey> rest;
  for (const auto& family : families()) {
    if (!has_sizes(described_part(config, family), family)) { continue; }
    auto unread = unread_keys(config, family);
    const bool preferred = family.model_type == "llama";  // the most common; others with as few keys unread come first
    if (best != nullptr && unread.size() >= rest.size() + (preferred ? 1 : 0)) { continue; }
    best = &family;
    rest = std::move(unread);
  }
  if (best == nullptr) { return {}; }
  if (rest.empty()) {
    return fmt::format("all its keys are those of {0}: \"--as {0}\" reads it as one", best->model_type);
  }
  for (auto& key : rest) { key.near.reset(); }
  return fmt::format("its sizes are those of {0}: \"--as {0}\" reads it as one, without {1}", best->model_type,
                     text_of(rest));
}

}  // namespace orrery::workload::huggingface
