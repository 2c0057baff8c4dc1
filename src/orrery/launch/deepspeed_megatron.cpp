// Arguments of Megatron-DeepSpeed's pretrain_gpt.py: settings that DeepSpeed's own configuration does not have.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "orrery/launch/layout.hpp"
#include "orrery/launch/tools.hpp"
#include "orrery/parallel/recompute.hpp"

namespace orrery::launch {

namespace {

void add_model(const TrainingRun& run, Sheet& sheet) {
  using workload::Activation;
  const auto& model = run.model;
  const auto note = [&](std::string_view text) { sheet.note("--model " + model.name, text); };
  sheet.value("--num-layers", model.layers);
  sheet.value("--hidden-size", model.hidden);
  sheet.value("--ffn-hidden-size", model.ffn);
  sheet.value("--num-attention-heads", model.heads);
  if (model.kv_heads != model.heads && !model.is_latent()) { sheet.value("--num-key-value-heads", model.kv_heads); }
  if (model.head_dim * model.heads != model.hidden) { sheet.value("--kv-channels", model.head_dim); }
  sheet.value("--seq-length", run.job.seq);
  sheet.value("--max-position-embeddings", std::max(model.max_seq, run.job.seq));
  sheet.toggle("--use-rotary-position-embeddings", model.position == workload::Position::rotary);
  sheet.value("--normalization", model.norm == workload::Normalisation::rmsnorm ? "rmsnorm" : "layernorm");
  sheet.toggle("--swiglu", model.gated_mlp);
  if (model.gated_mlp && model.activation != Activation::silu) { note("gated MLPs are launched as SwiGLU"); }
  sheet.toggle("--untie-embeddings-and-output-weights", !model.tied_embeddings);
  sheet.toggle("--disable-bias-linear", !model.mlp_bias && !model.attention_output_bias);
  sheet.value("--attention-dropout", fmt::format("{}", model.dropout));
  sheet.value("--hidden-dropout", fmt::format("{}", model.dropout));
  if (model.is_latent()) { note("Megatron-DeepSpeed has no latent attention; multi-head attention is launched"); }
  if (model.mtp_layers > 0) { note("Megatron-DeepSpeed has no multi-token prediction; its modules are left out"); }
  if (model.sliding_window > 0) {
    note("Megatron-DeepSpeed has no sliding windows; every position attends to all positions before it");
  }
  if (model.qk_norm) { note("Megatron-DeepSpeed has no norms of queries and keys (QK norm); they are left out"); }
  if (model.post_norms || model.parallel_residual || model.embedding_norm) {
    note("no option in Megatron-DeepSpeed for parts of its layers: see --emit megatron");
  }
}

void add_experts(const TrainingRun& run, Sheet& sheet) {
  const auto& experts = run.model.experts;
  const auto note = [&](std::string_view text) { sheet.note("--model " + run.model.name, text); };
  sheet.value("--num-experts", experts.count);
  sheet.value("--topk", experts.active);
  sheet.value("--expert-interval", experts.every);
  sheet.value("--moe-expert-parallel-size", run.plan.ep);
  sheet.toggle("--enable-expert-tensor-parallelism", run.plan.etp > 1);
  sheet.toggle("--create-moe-param-group");
  sheet.toggle("--disable-moe-token-dropping", experts.capacity_factor == 0.0);
  if (experts.capacity_factor > 0) {
    sheet.value("--moe-train-capacity-factor", fmt::format("{}", experts.capacity_factor));
  }
  if (experts.ffn != run.model.ffn) { note("Megatron-DeepSpeed gives experts the FFN size of the dense MLP"); }
  if (experts.shared_ffn > 0) {
    note("Megatron-DeepSpeed has no shared experts of their own FFN size; they are left out");
  }
  if (experts.first_dense > 0) { note("Megatron-DeepSpeed has no leading dense layers before its experts"); }
  if (experts.groups > 0) { note("Megatron-DeepSpeed does not limit the nodes that a token is sent to"); }
  if (run.plan.etp > 1 && run.plan.etp != run.plan.tp) {
    sheet.note(fmt::format("--etp {}", run.plan.etp), "experts are split over all tp ranks or not at all");
  }
}

void add_pipeline(const TrainingRun& run, Sheet& sheet) {
  using parallel::ScheduleKind;
  const auto& plan = run.plan;
  sheet.value("--pipeline-model-parallel-size", plan.pp);
  sheet.toggle("--no-pipeline-parallel", plan.pp == 1);
  sheet.toggle("--enable-zbh1-pipeline", plan.schedule == ScheduleKind::zero_bubble);
  if (plan.schedule == ScheduleKind::zero_bubble) { sheet.toggle("--enable-zbh1-exact-semantics"); }
  const auto layout = layout_of(run.model, plan);
  if (layout.split == LayerSplit::ends_counted || layout.split == LayerSplit::ends_set ||
      layout.split == LayerSplit::listed) {
    std::string shares;
    for (const auto layers : layout.layers) { shares += fmt::format("{}{}", shares.empty() ? "" : " ", layers); }
    sheet.note(
        fmt::format("--pp {}", plan.pp),
        fmt::format("DeepSpeed's PipelineModule distributes layers itself, as evenly as possible; the plan has {}",
                    shares));
  }
}

// Only full recomputation of whole layers has checkpoints, which DeepSpeed stores. The layers of its pipeline are
// checkpointed all or not at all.
void add_recompute(const parallel::Plan& plan, Sheet& sheet) {
  MegatronRecompute arguments = megatron_recompute(plan);
  const bool has_checkpoints = !arguments.method.empty();
  if (parallel::recomputes_some_layers(plan) && (plan.pp > 1 || !has_checkpoints)) {
    sheet.note(recompute_layers_flag(plan),
               fmt::format("Megatron-DeepSpeed recomputes all layers{}, not the first {} of each chunk: less memory "
                           "and more recompute time than the estimate",
                           plan.pp > 1 && has_checkpoints ? " of a pipeline" : "", plan.recompute_layers));
    parallel::Plan all = plan;
    all.recompute_layers = 0;
    arguments = megatron_recompute(all);
  }
  if (plan.recompute_modules.any()) {
    sheet.note(recompute_modules_flag(plan),
               "selective recomputation of Megatron-DeepSpeed is of the attention core only");
  }
  sheet.toggle("--deepspeed-activation-checkpointing", has_checkpoints);
  sheet.value("--recompute-granularity", std::string(arguments.granularity), !arguments.granularity.empty());
  sheet.value("--recompute-method", std::string(arguments.method), has_checkpoints);
  sheet.value("--recompute-num-layers", arguments.num_layers, has_checkpoints);
  sheet.toggle("--checkpoint-in-cpu", has_checkpoints && plan.offload.activations);
}

void add_plan(const TrainingRun& run, Sheet& sheet) {
  const auto& plan = run.plan;
  sheet.value("--tensor-model-parallel-size", plan.tp);
  sheet.toggle("--sequence-parallel", plan.sequence_parallel);
  const bool ulysses = plan.cp > 1 && plan.cp_method == workload::ContextMethod::ulysses;
  if (ulysses) { sheet.value("--ds-sequence-parallel-size", plan.cp); }
  if (ulysses && plan.sequence_parallel) {
    sheet.note("--sequence-parallel", "Megatron-DeepSpeed refuses it together with --ds-sequence-parallel-size");
  }
  add_pipeline(run, sheet);
  sheet.value("--micro-batch-size", plan.micro_batch);
  sheet.value("--global-batch-size", run.job.global_batch);
  sheet.value("--zero-stage", plan.zero);
  add_recompute(plan, sheet);
  sheet.toggle("--cpu-optimizer", plan.offload.optimizer);
  sheet.toggle("--use-flash-attn-v2", run.stack.attention.kernel == hardware::AttentionKernel::flash);
  sheet.toggle("--no-gradient-accumulation-fusion", !run.stack.fusion.gradient_accumulation);
  sheet.toggle("--fp16", run.job.precision == hardware::Precision::fp16);
  const bool wide = run.job.precision == hardware::Precision::fp32 || run.job.precision == hardware::Precision::tf32;
  sheet.toggle("--bf16", run.job.precision != hardware::Precision::fp16 && !wide);
  sheet.toggle("--finetune", run.job.task == parallel::Task::finetune);
}

}  // namespace

Sheet megatron_deepspeed_sheet(const TrainingRun& run) {
  Sheet sheet;
  sheet.open("MODEL");
  add_model(run, sheet);
  if (run.model.has_experts()) { add_experts(run, sheet); }
  sheet.open("PLAN");
  add_plan(run, sheet);
  return sheet;
}

}  // namespace orrery::launch
