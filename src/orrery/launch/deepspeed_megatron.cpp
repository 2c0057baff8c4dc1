// Arguments of Megatron-DeepSpeed's pretrain_gpt.py: settings that DeepSpeed's own configuration does not have.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "orrery/launch/facts.hpp"
#include "orrery/launch/layout.hpp"
#include "orrery/launch/tools.hpp"
#include "orrery/parallel/recompute.hpp"

namespace orrery::launch {

namespace {

void add_rotary(const workload::Model& model, Sheet& sheet) {
  const auto& rope = model.rope;
  sheet.toggle("--use-rotary-position-embeddings");
  if (rope.base > 0.0) { sheet.value("--rotary-position-embeddings-theta", fmt::format("{:.0f}", rope.base)); }
  if (rope.fraction < 1.0) { sheet.value("--rotary-percent", fmt::format("{}", rope.fraction)); }
  sheet.states({"rope.base", "rope.fraction"});
}

void add_kinds(const workload::Model& model, Sheet& sheet) {
  using workload::Activation;
  sheet.value("--normalization", model.norm == workload::Normalisation::rmsnorm ? "rmsnorm" : "layernorm");
  if (model.norm_eps > 0.0) { sheet.value("--layernorm-epsilon", fmt::format("{}", model.norm_eps)); }
  sheet.toggle("--swiglu", model.gated_mlp);
  if (model.gated_mlp && model.activation != Activation::silu) {
    sheet.note("--model " + model.name, "gated MLPs are launched as SwiGLU");
    sheet.notes_field("activation");
  } else if (!model.gated_mlp) {
    const bool squared = model.activation == Activation::squared_relu;
    sheet.toggle("--squared-relu", squared);
    if (squared || model.activation == Activation::gelu) { sheet.states({"activation"}); }
  } else {
    sheet.states({"activation"});
  }
  const bool biased = model.mlp_bias || model.attention_output_bias;
  sheet.toggle("--disable-bias-linear", !biased);
  // One switch for all linear layers.
  if (model.qkv_bias == biased && model.mlp_bias == biased && model.attention_output_bias == biased) {
    sheet.states({"qkv_bias", "attention_output_bias", "mlp_bias"});
  }
  sheet.states({"norm", "norm_eps", "gated_mlp"});
}

void add_model(const TrainingRun& run, Sheet& sheet) {
  const auto& model = run.model;
  sheet.value("--num-layers", model.layers);
  sheet.value("--hidden-size", model.hidden);
  sheet.value("--ffn-hidden-size", model.ffn);
  sheet.value("--num-attention-heads", model.heads);
  if (model.kv_heads != model.heads && !model.is_latent()) { sheet.value("--num-key-value-heads", model.kv_heads); }
  if (model.head_dim * model.heads != model.hidden) { sheet.value("--kv-channels", model.head_dim); }
  sheet.value("--seq-length", run.job.seq);
  const bool learned = model.position == workload::Position::learned;
  const std::int64_t rows = learned && model.position_rows > 0 ? model.position_rows : model.max_seq;
  sheet.value("--max-position-embeddings", std::max(rows, run.job.seq));
  if (rows >= run.job.seq) { sheet.states({learned && rows != model.max_seq ? "position_rows" : "max_seq"}); }
  if (model.position == workload::Position::rotary) { add_rotary(model, sheet); }
  if (learned || model.position == workload::Position::rotary) { sheet.states({"position"}); }
  add_kinds(model, sheet);
  sheet.toggle("--untie-embeddings-and-output-weights", !model.tied_embeddings);
  sheet.value("--attention-dropout", fmt::format("{}", model.dropout));
  sheet.value("--hidden-dropout", fmt::format("{}", model.dropout));
  sheet.states({"layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "tied_embeddings", "dropout"});
}

void add_experts(const TrainingRun& run, Sheet& sheet) {
  const auto& experts = run.model.experts;
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
  sheet.states({"experts.count", "experts.active", "experts.every", "experts.capacity_factor"});
  if (experts.ffn == run.model.ffn) {
    sheet.states({"experts.ffn"});  // experts have the width of the dense MLP
  }
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
  note_unsaid(run, "Megatron-DeepSpeed has no option for", sheet);
  note_defaults(run, {"Megatron-DeepSpeed", "10000", "1e-05"}, sheet);
  sheet.open("PLAN");
  add_plan(run, sheet);
  return sheet;
}

}  // namespace orrery::launch
