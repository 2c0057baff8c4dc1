// The plan as arguments of Megatron-LM, which nemo.cpp translates for Megatron-Bridge.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/launch/layout.hpp"
#include "orrery/launch/tools.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/parallel/recompute.hpp"

namespace orrery::launch {

using parallel::Plan;
using parallel::ScheduleKind;

bool uses_fsdp(const Plan& plan) { return plan.zero >= 2; }

namespace {

// Megatron has no module of the activations of dense MLPs and shared experts.
std::vector<std::string_view> megatron_modules(const Plan& plan) {
  const auto& modules = plan.recompute_modules;
  std::vector<std::string_view> names;
  const auto add = [&](bool on, std::string_view name) {
    if (on) { names.push_back(name); }
  };
  add(modules.core_attention || !modules.any(), "core_attn");
  add(modules.norms, "layernorm");
  add(modules.mla_up_projection, "mla_up_proj");
  add(modules.expert_activations || modules.activations, "moe_act");
  add(modules.mlp, "mlp");
  add(modules.experts, "moe");
  add(modules.shared_experts, "shared_experts");
  return names;
}

}  // namespace

std::string recompute_modules_flag(const Plan& plan) {
  return "--recompute-modules " + parallel::text_of(*parallel::find_choice("recompute_modules"), plan);
}

// "block" recomputes the first so many layers of a chunk, "uniform" with one layer a unit recomputes every layer.
MegatronRecompute megatron_recompute(const Plan& plan) {
  using parallel::Recompute;
  switch (plan.recompute) {
    case Recompute::none: return {};
    case Recompute::selective: return {"selective", "", megatron_modules(plan), 0};
    case Recompute::full:
      return plan.recompute_layers > 0 ? MegatronRecompute{"full", "block", {}, plan.recompute_layers}
                                       : MegatronRecompute{"full", "uniform", {}, 1};
  }
  throw_internal_error("known recompute choice", __FILE__, __LINE__);
}

std::string recompute_layers_flag(const Plan& plan) {
  return fmt::format("--recompute-layers {}", plan.recompute_layers);
}

namespace {

class PlanSettings {
 public:
  PlanSettings(const TrainingRun& run, Dialect dialect, Sheet& sheet)
      : run_(run), plan_(run.plan), bridge_(dialect == Dialect::bridge), sheet_(sheet) {}

  void add() {
    sheet_.open("PARALLEL");
    groups();
    pipeline();
    schedule();
    tp_overlap();
    sheet_.open("BATCH");
    sheet_.value("--micro-batch-size", plan_.micro_batch);
    sheet_.value("--global-batch-size", run_.job.global_batch);
    sheet_.open("DATA_PARALLEL");
    optimizer();
    sharding();
    reduction();
    sheet_.open("MEMORY");
    recompute();
    offload_optimizer();
    offload_layers();
    sheet_.open("PRECISION");
    precision();
    elements();
    kernels();
    note_placement(run_, sheet_);
  }

 private:
  [[nodiscard]] const char* tool_name() const { return bridge_ ? "Megatron-Bridge" : "Megatron-LM"; }

  void groups() {
    sheet_.value("--tensor-model-parallel-size", plan_.tp);
    sheet_.toggle("--sequence-parallel", plan_.sequence_parallel);
    sheet_.value("--context-parallel-size", plan_.cp);
    if (plan_.cp > 1) {
      const bool ring = plan_.cp_method == workload::ContextMethod::ring;
      sheet_.value("--cp-comm-type", ring ? "p2p" : "a2a");
    }
    if (run_.model.has_experts()) {
      sheet_.value("--expert-model-parallel-size", plan_.ep);
      sheet_.value("--expert-tensor-parallel-size", plan_.etp);
    }
    const auto& placement = plan_.placement;
    const bool stages_inside = placement.pp >= 0 && placement.dp >= 0 && placement.pp < placement.dp;
    if (stages_inside) { sheet_.toggle("--use-tp-pp-dp-mapping"); }
  }

  void pipeline() {
    const Layout layout = layout_of(run_.model, plan_);
    const bool listed = layout.split == LayerSplit::listed;
    const bool set = layout.split == LayerSplit::ends_set, counted = layout.split == LayerSplit::ends_counted;
    sheet_.value("--pipeline-model-parallel-size", plan_.pp);
    sheet_.value("--num-virtual-stages-per-pipeline-rank", plan_.vpp, plan_.vpp > 1 && (!listed || bridge_));
    sheet_.value("--pipeline-model-parallel-layout", listed ? layout_text(layout, run_.model.mtp_layers) : "", listed);
    sheet_.value("--decoder-first-pipeline-num-layers", plan_.first_stage_layers, set && plan_.first_stage_layers > 0);
    sheet_.value("--decoder-last-pipeline-num-layers", plan_.last_stage_layers, set && plan_.last_stage_layers > 0);
    sheet_.toggle("--account-for-embedding-in-pipeline-split", counted && plan_.embedding_as_layer);
    sheet_.toggle("--account-for-loss-in-pipeline-split", counted && plan_.head_as_layer);
  }

  void schedule() {
    switch (plan_.schedule) {
      case ScheduleKind::one_f_one_b:
      case ScheduleKind::interleaved: return;  // set by --num-virtual-stages-per-pipeline-rank
      case ScheduleKind::gpipe:
        return instead("--schedule gpipe", "runs 1f1b instead: the same bubble, less activation memory");
      case ScheduleKind::zero_bubble:
        return instead("--schedule zero-bubble", "has no such schedule and runs 1f1b: more bubble than the estimate");
      case ScheduleKind::dualpipe:
        return instead(
            "--schedule dualpipe",
            "has no such schedule and runs 1f1b: more bubble than the estimate, and one copy of the weights");
    }
  }

  void tp_overlap() {
    sheet_.toggle("--tp-comm-overlap", plan_.tp_overlap != parallel::TpOverlap::none);
    if (plan_.tp_overlap == parallel::TpOverlap::none) { return; }
    sheet_.note(fmt::format("--tp-overlap {}", config::enum_name(plan_.tp_overlap)),
                "ring or pipelined overlap is set per GEMM (--tp-comm-overlap-cfg), not for the whole plan");
    if (bridge_) {
      sheet_.note(fmt::format("--tp-overlap {}", config::enum_name(plan_.tp_overlap)),
                  "a recipe with a comm_overlap section of its own overrides this: set it there");
    }
  }

  [[nodiscard]] bool is_muon() const { return run_.stack.optimizer.kind == hardware::OptimizerKind::muon; }

  // Muon shards whole matrices with an optimizer of its own (dist_muon), not with the distributed optimizer.
  void optimizer() {
    using hardware::OptimizerKind;
    const std::string flag = fmt::format("--optimizer {}", hardware::name_of(run_.stack.optimizer.kind));
    switch (run_.stack.optimizer.kind) {
      case OptimizerKind::adam: return;  // the default
      case OptimizerKind::sgd: return sheet_.value("--optimizer", "sgd");
      case OptimizerKind::adam8bit: return instead(flag, "has no 8-bit moments; Adam is launched: more memory");
      case OptimizerKind::muon: break;
    }
    sheet_.value("--optimizer", plan_.zero >= 1 ? "dist_muon" : "muon");
    if (plan_.zero >= 1) { instead(flag, "all-reduces gradients; the estimate reduces them to shards"); }
    if (plan_.zero >= 2) { instead(flag, "shards neither gradients nor weights with Muon: set --zero 1"); }
    if (run_.job.precision == hardware::Precision::fp16) { instead(flag, "refuses fp16 with Muon"); }
  }

  void sharding() {
    static constexpr const char* kStrategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const bool fsdp = uses_fsdp(plan_);
    sheet_.toggle("--use-distributed-optimizer", plan_.zero >= 1 && !is_muon());
    sheet_.toggle("--use-megatron-fsdp", fsdp);
    sheet_.value("--data-parallel-sharding-strategy", kStrategies[std::clamp(plan_.zero, 0, 3)], fsdp);
    sheet_.value("--ckpt-format", "fsdp_dtensor", fsdp);  // the only valid one
    if (plan_.zero >= 1 && plan_.sharded_copies() > 1) {
      sheet_.value("--num-distributed-optimizer-instances", plan_.sharded_copies());
    } else if (plan_.shard > 0 && plan_.zero >= 1) {
      return;  // one copy: no option needed
    }
    if (plan_.shard > 0 && plan_.zero == 0) { sheet_.note("--shard", "has no effect below --zero 1"); }
  }

  void reduction() {
    note_reductions(run_, "Megatron-FSDP", true, sheet_);
    const bool gathers =
        plan_.zero >= 1 && !is_muon() && plan_.overlaps_gathers() && run_.stack.overlap.parameter_gather;
    sheet_.toggle("--overlap-grad-reduce", plan_.dp_overlap);
    sheet_.toggle("--overlap-param-gather", gathers);
    const auto bucket = static_cast<std::int64_t>(run_.stack.gradients.bucket(plan_.replicas()));
    if (bucket > 0 && !uses_fsdp(plan_)) { sheet_.value("--ddp-bucket-size", bucket); }
  }

  void recompute() {
    const MegatronRecompute arguments = megatron_recompute(plan_);
    const auto value = [&](const char* name, std::string_view text) {
      sheet_.value(name, std::string(text.empty() ? "none" : text), !text.empty());  // without text: a switch
    };
    value("--recompute-granularity", arguments.granularity);
    const std::string modules = fmt::format("{}", fmt::join(arguments.modules, bridge_ ? "," : " "));
    value("--recompute-modules", bridge_ && !modules.empty() ? "[" + modules + "]" : modules);
    if (plan_.recompute_modules.activations) {
      instead(recompute_modules_flag(plan_),
              "recomputes activations of routed experts only (moe_act): more memory than the estimate where a layer "
              "has others");
    }
    value("--recompute-method", arguments.method);
    sheet_.value("--recompute-num-layers", arguments.num_layers, arguments.num_layers > 0);
    if (parallel::recomputes_some_layers(plan_) && arguments.num_layers != plan_.recompute_layers) {
      instead(recompute_layers_flag(plan_),
              fmt::format("recomputes modules in all layers, not in the first {} of each chunk: less memory and more "
                          "recompute time than the estimate",
                          plan_.recompute_layers));
    }
  }

  void offload_optimizer() {
    const bool on = plan_.offload.optimizer;
    sheet_.toggle("--optimizer-cpu-offload", on);
    if (!on) { return; }
    sheet_.toggle("--overlap-cpu-optimizer-d2h-h2d");
    if (!plan_.updates_on_host()) {
      sheet_.note("--offload optimizer",
                  fmt::format("{} updates the weights on the host CPU (--optimizer-device host); in the estimate the "
                              "device fetches the optimizer state and updates",
                              tool_name()));
    }
    if (plan_.zero == 0) { sheet_.note("--offload optimizer", "requires a distributed optimizer: set --zero 1"); }
  }

  // Whole layers, at most all but one, and only without pipeline stages and without recomputation.
  void offload_layers() {
    const auto& offload = plan_.offload;
    if (!offload.activations && !offload.weights) { return; }
    const std::string flag = offload.activations && offload.weights ? "--offload weights,activations"
                             : offload.weights                      ? "--offload weights"
                                                                    : "--offload activations";
    if (plan_.pp > 1 || plan_.recompute != parallel::Recompute::none) {
      return instead(flag, "offloads layers only without pipeline stages and without recomputation; no offload is set");
    }
    if (!bridge_ && offload.weights) {
      sheet_.note(flag, "Megatron-LM has no argument to offload weights; Megatron-Bridge (--emit nemo) has one");
      if (!offload.activations) { return; }
    }
    sheet_.value("--cpu-offloading-num-layers", run_.model.layers - 1);
    if (bridge_) {
      sheet_.toggle("--cpu-offloading-activations", offload.activations);
      sheet_.toggle("--cpu-offloading-weights", offload.weights);
    }
    sheet_.note(flag, "applies to all layers but the last, which cannot be offloaded");
  }

  [[nodiscard]] const char* fp8_recipe() const {
    switch (run_.stack.fp8_recipe) {
      case hardware::Fp8Recipe::delayed: return "delayed";
      case hardware::Fp8Recipe::current: return "tensorwise";
      case hardware::Fp8Recipe::block: return "blockwise";
    }
    return "";
  }
  [[nodiscard]] const char* fp8_configuration() const {
    switch (run_.stack.fp8_recipe) {
      case hardware::Fp8Recipe::delayed: return "bf16_with_fp8_delayed_scaling_mixed";
      case hardware::Fp8Recipe::current: return "bf16_with_fp8_current_scaling_mixed";
      case hardware::Fp8Recipe::block: return "bf16_with_fp8_subchannel_scaling_mixed";
    }
    return "";
  }

  void precision() {
    using hardware::Precision;
    const auto p = run_.job.precision;
    const bool wide = p == Precision::fp32 || p == Precision::tf32;
    if (p == Precision::tf32) {
      sheet_.note("--precision tf32", "TF32 is a switch of PyTorch, not of this script; fp32 is set");
    }
    if (bridge_) {
      const char* recipe = p == Precision::fp16  ? "16-mixed"
                           : p == Precision::fp8 ? fp8_configuration()
                           : p == Precision::fp4 ? "bf16_with_nvfp4_mixed"
                                                 : "bf16_mixed";
      return sheet_.value("mixed_precision", recipe, !wide);
    }
    sheet_.toggle("--fp16", p == Precision::fp16);
    sheet_.toggle("--bf16", !wide && p != Precision::fp16);
    if (p == Precision::fp8) {
      sheet_.value("--fp8-format", "hybrid");
      sheet_.value("--fp8-recipe", fp8_recipe());
    }
    if (p == Precision::fp4) { sheet_.value("--fp4-format", "e2m1"); }
    if (p == Precision::fp16 && run_.model.has_experts() && plan_.ep > 1) {
      sheet_.note("--precision fp16", "Megatron-LM refuses fp16 with expert parallelism");
    }
  }

  // Formats of gradients and optimizer state, from the stack.
  void elements() {
    const auto& stack = run_.stack;
    const bool half_reduce = stack.gradients.reduce_element < Bytes(4.0);
    const bool is_fp16 = run_.job.precision == hardware::Precision::fp16;
    if (bridge_) {
      sheet_.toggle("--grad-reduce-in-fp32", !half_reduce);
    } else {
      sheet_.toggle("--grad-reduce-in-bf16", half_reduce && !is_fp16);
      sheet_.toggle("--accumulate-allreduce-grads-in-fp32", is_fp16 && !half_reduce);
    }
    if ((stack.gradients.element < Bytes(4.0)) != half_reduce) {
      sheet_.note("--gradient-precision", "gradients are accumulated in the format of their reduction");
    }
    const bool half_state = stack.optimizer.state_element <= Bytes(4.0) && stack.optimizer.state_element > Bytes(0.0);
    sheet_.toggle("--use-precision-aware-optimizer", half_state || plan_.offload.optimizer);
    if (half_state && bridge_) {
      sheet_.note("--stack",
                  "its optimizer state is 16-bit; no override sets that: in Python, optimizer.exp_avg_dtype = "
                  "optimizer.exp_avg_sq_dtype = torch.bfloat16");
    } else if (half_state) {
      sheet_.value("--exp-avg-dtype", "bf16");
      sheet_.value("--exp-avg-sq-dtype", "bf16");
    }
  }

  void kernels() {
    const auto& stack = run_.stack;
    const bool plain = stack.attention.kernel == hardware::AttentionKernel::plain;
    if (plain) { sheet_.value("--attention-backend", "unfused"); }
    sheet_.toggle("--cross-entropy-loss-fusion", stack.fusion.loss);
    sheet_.toggle("--no-gradient-accumulation-fusion", !stack.fusion.gradient_accumulation);
  }

  void instead(std::string_view flag, std::string_view text) {
    sheet_.note(flag, fmt::format("{} {}", tool_name(), text));
  }

  const TrainingRun& run_;
  const Plan& plan_;
  bool bridge_;
  Sheet& sheet_;
};

}  // namespace

Sheet megatron_sheet(const TrainingRun& run, Dialect dialect) {
  Sheet sheet;
  add_model_settings(run, dialect, sheet);
  PlanSettings(run, dialect, sheet).add();
  return sheet;
}

}  // namespace orrery::launch
