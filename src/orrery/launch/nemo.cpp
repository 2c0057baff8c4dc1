// NeMo's Megatron-Bridge: a shell script that runs a recipe with overrides. Recipes have defaults of their own, so
// settings that are off are written, too.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/launch/tools.hpp"

namespace orrery::launch {

namespace {

constexpr std::string_view kBridgeSource =
    "NVIDIA-NeMo/Megatron-Bridge scripts/training/run_recipe.py@03b04509eb and "
    "docs/megatron-lm-to-megatron-bridge.md@167ba2ad32";

// Megatron-Bridge's field for an argument of Megatron-LM; `opposite`: the field is true when the switch is absent.
struct Field {
  std::string_view argument, path;
  bool opposite = false;
};

constexpr std::array kFields = std::to_array<Field>({
    {"--num-layers", "model.num_layers"},
    {"--hidden-size", "model.hidden_size"},
    {"--ffn-hidden-size", "model.ffn_hidden_size"},
    {"--num-attention-heads", "model.num_attention_heads"},
    {"--num-query-groups", "model.num_query_groups"},
    {"--kv-channels", "model.kv_channels"},
    {"--seq-length", "model.seq_length"},
    {"--seq-length", "dataset.seq_length"},
    {"--max-position-embeddings", "model.max_position_embeddings"},
    {"--position-embedding-type", "model.position_embedding_type"},
    {"--rotary-base", "model.rotary_base"},
    {"--rotary-percent", "model.rotary_percent"},
    {"--no-rope-freq", "model.no_rope_freq"},
    {"--rope-type", "model.rope_type"},
    {"--rotary-seq-len-interpolation-factor", "model.seq_len_interpolation_factor"},
    {"--use-rope-scaling", "model.rope_scaling"},
    {"--rope-scaling-factor", "model.rope_scaling_factor"},
    {"--padded-vocab-size", "model.vocab_size"},
    {"--make-vocab-size-divisible-by", "model.make_vocab_size_divisible_by"},
    {"--untie-embeddings-and-output-weights", "model.share_embeddings_and_output_weights", true},
    {"--normalization", "model.normalization"},
    {"--norm-epsilon", "model.layernorm_epsilon"},
    {"--softmax-type", "model.softmax_type"},
    {"--qk-layernorm", "model.qk_layernorm"},
    {"--attention-dropout", "model.attention_dropout"},
    {"--hidden-dropout", "model.hidden_dropout"},
    {"--disable-bias-linear", "model.add_bias_linear", true},
    {"--add-qkv-bias", "model.add_qkv_bias"},
    {"--window-size", "model.window_size"},
    {"--window-attn-skip-freq", "model.window_attn_skip_freq"},
    {"--multi-latent-attention", "model.multi_latent_attention"},
    {"--q-lora-rank", "model.q_lora_rank"},
    {"--kv-lora-rank", "model.kv_lora_rank"},
    {"--qk-head-dim", "model.qk_head_dim"},
    {"--qk-pos-emb-head-dim", "model.qk_pos_emb_head_dim"},
    {"--v-head-dim", "model.v_head_dim"},
    {"--mtp-num-layers", "model.mtp_num_layers"},
    {"--num-experts", "model.num_moe_experts"},
    {"--moe-router-topk", "model.moe_router_topk"},
    {"--moe-ffn-hidden-size", "model.moe_ffn_hidden_size"},
    {"--moe-layer-freq", "model.moe_layer_freq"},
    {"--moe-shared-expert-intermediate-size", "model.moe_shared_expert_intermediate_size"},
    {"--moe-shared-expert-gate", "model.moe_shared_expert_gate"},
    {"--moe-router-score-function", "model.moe_router_score_function"},
    {"--moe-router-topk-scaling-factor", "model.moe_router_topk_scaling_factor"},
    {"--moe-router-enable-expert-bias", "model.moe_router_enable_expert_bias"},
    {"--moe-router-pre-softmax", "model.moe_router_pre_softmax"},
    {"--moe-router-num-groups", "model.moe_router_num_groups"},
    {"--moe-router-group-topk", "model.moe_router_group_topk"},
    {"--moe-expert-capacity-factor", "model.moe_expert_capacity_factor"},
    {"--moe-grouped-gemm", "model.moe_grouped_gemm"},
    {"--moe-token-dispatcher-type", "model.moe_token_dispatcher_type"},
    {"--tensor-model-parallel-size", "model.tensor_model_parallel_size"},
    {"--sequence-parallel", "model.sequence_parallel"},
    {"--context-parallel-size", "model.context_parallel_size"},
    {"--cp-comm-type", "model.cp_comm_type"},
    {"--expert-model-parallel-size", "model.expert_model_parallel_size"},
    {"--expert-tensor-parallel-size", "model.expert_tensor_parallel_size"},
    {"--use-tp-pp-dp-mapping", "dist.use_tp_pp_dp_mapping"},
    {"--pipeline-model-parallel-size", "model.pipeline_model_parallel_size"},
    {"--num-virtual-stages-per-pipeline-rank", "model.virtual_pipeline_model_parallel_size"},
    {"--pipeline-model-parallel-layout", "model.pipeline_model_parallel_layout"},
    {"--decoder-first-pipeline-num-layers", "model.num_layers_in_first_pipeline_stage"},
    {"--decoder-last-pipeline-num-layers", "model.num_layers_in_last_pipeline_stage"},
    {"--account-for-embedding-in-pipeline-split", "model.account_for_embedding_in_pipeline_split"},
    {"--account-for-loss-in-pipeline-split", "model.account_for_loss_in_pipeline_split"},
    {"--tp-comm-overlap", "model.tp_comm_overlap"},
    {"--micro-batch-size", "train.micro_batch_size"},
    {"--global-batch-size", "train.global_batch_size"},
    {"--optimizer", "optimizer.optimizer"},
    {"--use-distributed-optimizer", "ddp.use_distributed_optimizer"},
    {"--use-distributed-optimizer", "optimizer.use_distributed_optimizer"},
    {"--use-megatron-fsdp", "ddp.use_megatron_fsdp"},
    {"--use-megatron-fsdp", "dist.use_megatron_fsdp"},
    {"--data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy"},
    {"--ckpt-format", "checkpoint.ckpt_format"},
    {"--num-distributed-optimizer-instances", "ddp.num_distributed_optimizer_instances"},
    {"--overlap-grad-reduce", "ddp.overlap_grad_reduce"},
    {"--overlap-param-gather", "ddp.overlap_param_gather"},
    {"--ddp-bucket-size", "ddp.bucket_size"},
    {"--recompute-granularity", "model.recompute_granularity"},
    {"--recompute-modules", "model.recompute_modules"},
    {"--recompute-method", "model.recompute_method"},
    {"--recompute-num-layers", "model.recompute_num_layers"},
    {"--optimizer-cpu-offload", "optimizer.optimizer_cpu_offload"},
    {"--overlap-cpu-optimizer-d2h-h2d", "optimizer.overlap_cpu_optimizer_d2h_h2d"},
    {"--cpu-offloading-num-layers", "model.cpu_offloading_num_layers"},
    {"--cpu-offloading-activations", "model.cpu_offloading_activations"},
    {"--cpu-offloading-weights", "model.cpu_offloading_weights"},
    {"--grad-reduce-in-fp32", "ddp.grad_reduce_in_fp32"},
    {"--use-precision-aware-optimizer", "optimizer.use_precision_aware_optimizer"},
    {"--attention-backend", "model.attention_backend"},
    {"--cross-entropy-loss-fusion", "model.cross_entropy_loss_fusion"},
    {"--no-gradient-accumulation-fusion", "model.gradient_accumulation_fusion", true},
    {"mixed_precision", "mixed_precision"},
});

// Settings that no recipe turns on: their off state needs no override, and null is not a valid value.
bool is_omitted(const Setting& setting) {
  static constexpr std::array<std::string_view, 2> kNames{"--ckpt-format", "--data-parallel-sharding-strategy"};
  return !setting.is_set && std::find(kNames.begin(), kNames.end(), setting.name) != kNames.end();
}

std::string value_of(const Setting& setting, bool opposite) {
  if (setting.value.empty() && setting.name != "--pipeline-model-parallel-layout") {
    return setting.is_set != opposite ? "true" : "false";
  }
  return setting.is_set ? setting.value : "null";
}

// Overrides of one setting, each a word for the shell.
std::vector<std::string> overrides_of(const Setting& setting) {
  std::vector<std::string> words;
  if (is_omitted(setting)) { return words; }
  if (setting.name == "--swiglu") {
    words.push_back(fmt::format("model.gated_linear_unit={}", setting.is_set));
    words.push_back(fmt::format("model.activation_func={}", setting.is_set ? "silu" : "gelu"));
    return words;
  }
  if (setting.name == "--quick-geglu") {  // the exact GELU here
    return {"model.gated_linear_unit=true", "model.activation_func=gelu"};
  }
  if (setting.name == "--squared-relu") {
    return {"model.gated_linear_unit=false", "model.activation_func=squared_relu"};
  }
  if (setting.name.starts_with("model.")) { return {fmt::format("{}={}", setting.name, setting.value)}; }
  if (setting.name == "--moe-enable-deepep") {
    words.emplace_back("model.moe_flex_dispatcher_backend=deepep");
    return words;
  }
  for (const auto& field : kFields) {
    if (field.argument == setting.name) {
      words.push_back(fmt::format("{}={}", field.path, value_of(setting, field.opposite)));
    }
  }
  ORRERY_ASSERT(!words.empty());
  // The parser of overrides reads a word with brackets or bars as one value only between quotes of its own.
  if (setting.name == "--pipeline-model-parallel-layout" && setting.is_set) {
    words.front() = fmt::format("model.pipeline_model_parallel_layout=\"{}\"", setting.value);
  }
  return words;
}

std::vector<std::string> adapter_words(const TrainingRun& run) {
  const auto& adapter = run.job.adapter;
  if (adapter.rank == 0) { return {}; }
  const bool all = adapter.targets == workload::Adapter::Targets::all;
  std::string attention = "linear_qkv,linear_proj";
  if (run.model.is_latent()) {
    const bool squeezed = run.model.latent.query_rank > 0;
    attention = squeezed ? "linear_q_down_proj,linear_q_up_proj" : "linear_q_proj";
    attention += ",linear_kv_down_proj,linear_kv_up_proj,linear_proj";
  }
  return {fmt::format("peft.dim={}", adapter.rank),
          fmt::format("peft.target_modules=[{}{}]", attention, all ? ",linear_fc1,linear_fc2" : "")};
}

// The recipe that the overrides apply to.
std::string recipe_line(const TrainingRun& run) {
  if (run.job.adapter.rank > 0) { return "RECIPE=${RECIPE:?a recipe of this model with adapters, ..._peft_config}\n"; }
  if (run.job.task == parallel::Task::finetune) {
    return "RECIPE=${RECIPE:?a recipe of this model for finetuning, ..._sft_config}\n";
  }
  if (run.model.is_latent()) { return "RECIPE=${RECIPE:-deepseek_v3_pretrain_config}\n"; }
  return "RECIPE=${RECIPE:-vanilla_gpt_pretrain_config}\n";
}

void note_recipe(const TrainingRun& run, Sheet& sheet) {
  if (run.model.is_latent() && run.job.adapter.rank == 0 && run.job.task == parallel::Task::pretrain) {
    sheet.note(
        "--model " + run.model.name,
        "the overrides apply to the recipe of DeepSeek-V3, which has latent attention; set RECIPE to use another");
  }
}

}  // namespace

Launch nemo(const TrainingRun& run) {
  Sheet sheet = megatron_sheet(run, Dialect::bridge);
  note_recipe(run, sheet);
  std::vector<std::string> lines;
  for (const auto& section : sheet.sections()) {
    for (const auto& setting : section.settings) {
      for (const auto& word : overrides_of(setting)) { lines.push_back(bash_word(word)); }
    }
  }
  if (run.plan.offload.activations || run.plan.offload.weights) {
    const bool offloads = run.plan.pp == 1 && run.plan.recompute == parallel::Recompute::none;
    lines.push_back(fmt::format("model.cpu_offloading={}", offloads));
  }
  for (const auto& word : adapter_words(run)) { lines.push_back(bash_word(word)); }
  if (run.job.task == parallel::Task::finetune) {
    lines.emplace_back("checkpoint.pretrained_checkpoint=\"${CHECKPOINT:?}\"");
  }
  std::string text =
      "#!/usr/bin/env bash\n" +
      heading(run, "a recipe of NeMo's Megatron-Bridge with overrides for this plan", kBridgeSource, sheet.notes());
  text += "set -euo pipefail\n\n" + max_connections_line(run.plan) + recipe_line(run);
  text += bash_array("OVERRIDES", lines);
  text += bash_array("TORCHRUN", torchrun_arguments(run));
  text += "# Add as overrides: data, tokenizer, learning rate, checkpoints.\n";
  text +=
      "torchrun \"${TORCHRUN[@]}\" scripts/training/run_recipe.py --recipe \"$RECIPE\" \"${OVERRIDES[@]}\" \"$@\"\n";
  return {std::move(text), sheet.notes(), sheet.noted_fields()};
}

}  // namespace orrery::launch
