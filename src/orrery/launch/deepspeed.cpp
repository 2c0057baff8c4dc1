// DeepSpeed: ds_config.json.
//
// JSON has no comments. DeepSpeed reads its configuration key by key and ignores unknown top-level keys, whether it
// reads the file itself or gets it from another library; comments would load in DeepSpeed alone (it reads with hjson).
// So notes, plan and command are under an additional top-level key, `_orrery`.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/launch/facts.hpp"
#include "orrery/launch/tools.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/recompute.hpp"

namespace orrery::launch {

namespace {

using Json = nlohmann::ordered_json;
using hardware::Precision;
using parallel::Plan;

constexpr std::string_view kDeepSpeedSource =
    "deepspeedai/DeepSpeed docs/_pages/config-json.md@00376da499, deepspeedai/Megatron-DeepSpeed "
    "megatron/arguments.py@f1feb8877d";

// DeepSpeed alone partitions a Hugging Face model (AutoTP, AutoEP, Ulysses), but not into pipeline stages, and not with
// tensor and expert parallelism together: those need Megatron-DeepSpeed.
bool needs_megatron(const Plan& plan) { return plan.pp > 1 || (plan.tp > 1 && plan.ep > 1); }

class Config {
 public:
  explicit Config(const TrainingRun& run) : run_(run), plan_(run.plan), by_megatron_(needs_megatron(run.plan)) {
    if (by_megatron_) { arguments_ = megatron_deepspeed_sheet(run); }
    notes_ = arguments_;
  }

  Launch write() {
    batch();
    precision();
    zero();
    checkpointing();
    if (!by_megatron_) { groups(); }
    note_missing();
    note_placement(run_, notes_);
    Json text = {{"_orrery", about()}};
    text.update(json_);
    return {text.dump(2) + "\n", notes_.notes(), notes_.noted_fields()};
  }

 private:
  void batch() {
    json_["train_batch_size"] = run_.job.global_batch;
    json_["train_micro_batch_size_per_gpu"] = plan_.micro_batch;
    json_["gradient_accumulation_steps"] = parallel::micro_batches(run_.job, plan_);
  }

  void precision() {
    const auto p = run_.job.precision;
    if (p == Precision::fp16) { json_["fp16"] = {{"enabled", true}}; }
    const bool narrow = p == Precision::fp8 || p == Precision::fp4;
    if (p == Precision::bf16 || narrow) { json_["bf16"] = {{"enabled", true}}; }
    if (narrow) {
      note(fmt::format("--precision {}", hardware::name_of(p)),
           "DeepSpeed has no GEMMs of this precision; bf16 is launched, slower than the estimate");
    }
    if (p == Precision::tf32) { note("--precision tf32", "TF32 is a switch of PyTorch, not of DeepSpeed"); }
    const auto type_of = [&](Bytes element) {
      return element >= Bytes(4.0) ? "fp32" : p == Precision::fp16 ? "fp16" : "bf16";
    };
    json_["data_types"] = {{"grad_accum_dtype", type_of(run_.stack.gradients.element)}};
    json_["communication_data_type"] = type_of(run_.stack.gradients.reduce_element);
  }

  void zero() {
    Json zero = {{"stage", plan_.zero}};
    if (plan_.zero > 0) { zero["overlap_comm"] = plan_.dp_overlap; }
    if (plan_.zero == 0 && plan_.dp_overlap) {
      note("--dp-overlap",
           "without ZeRO, DeepSpeed reduces gradients after the backward pass (--zero 1 overlaps them)");
    }
    const auto bucket = static_cast<std::int64_t>(run_.stack.gradients.bucket(plan_.replicas()));
    if (bucket > 0) { zero["reduce_bucket_size"] = bucket; }
    if (plan_.zero == 1 || plan_.zero == 2) { zero["reduce_scatter"] = true; }
    if (const auto kind = run_.stack.optimizer.kind; kind != hardware::OptimizerKind::adam) {
      note(fmt::format("--optimizer {}", hardware::name_of(kind)),
           "the training script passes the optimizer to deepspeed.initialize");
    }
    const Json host = {{"device", "cpu"}, {"pin_memory", true}};
    offload(zero, host);
    if (plan_.zero >= 2 && plan_.pp > 1) {
      note(fmt::format("--zero {}", plan_.zero), "DeepSpeed refuses it together with pipeline stages; valid: 0 or 1");
    }
    note_reductions(run_, "DeepSpeed", true, notes_);
    if (plan_.shard > 0) {
      note(fmt::format("--shard {}", plan_.shard),
           "DeepSpeed shards over all replicas (MiCS, which sharded over fewer, was removed)");
    }
    json_["zero_optimization"] = std::move(zero);
  }

  void offload(Json& zero, const Json& host) {
    const auto& offload = plan_.offload;
    if (offload.optimizer) {
      zero["offload_optimizer"] = host;
      if (!plan_.updates_on_host()) {
        note("--offload optimizer",
             "DeepSpeed updates the weights on the host CPU (--optimizer-device host); in the estimate the device "
             "fetches the optimizer state and updates");
      }
      if (plan_.zero == 0) { note("--offload optimizer", "DeepSpeed refuses it without ZeRO; set --zero 1"); }
    }
    if (offload.weights && plan_.zero == 3) { zero["offload_param"] = host; }
    if (offload.weights && plan_.zero != 3) {
      note("--offload weights", "valid with --zero 3 only; weights stay on the device");
    }
  }

  void checkpointing() {
    const bool full = has_layer_checkpoints();
    if (full) {
      json_["activation_checkpointing"] = {{"partition_activations", false},
                                           {"cpu_checkpointing", plan_.offload.activations}};
    }
    if (!by_megatron_) { note_recompute(); }
    if (plan_.offload.activations && !full) {
      note("--offload activations",
           "DeepSpeed offloads only the checkpoints of full recomputation; nothing is offloaded");
    }
    if (plan_.offload.activations && full) {
      note("--offload activations", "offloads the layer inputs that full recomputation stores");
    }
  }

  [[nodiscard]] bool has_layer_checkpoints() const {
    using parallel::Recompute;
    switch (plan_.recompute) {
      case Recompute::none:
      case Recompute::selective: return false;
      case Recompute::full: return true;
    }
    throw_internal_error("known recompute choice", __FILE__, __LINE__);
  }

  // Without Megatron-DeepSpeed the training script checkpoints.
  void note_recompute() {
    using parallel::Recompute;
    const std::string flag = fmt::format("--recompute {}", config::enum_name(plan_.recompute));
    switch (plan_.recompute) {
      case Recompute::none: return;
      case Recompute::selective:
        note(plan_.recompute_modules.any() ? recompute_modules_flag(plan_) : flag,
             fmt::format("the training script must checkpoint {}; no option does",
                         plan_.recompute_modules.any() ? "these modules" : "the attention core"));
        break;
      case Recompute::full:
        note(flag,
             "the training script must checkpoint the layers (model.gradient_checkpointing_enable()); this section "
             "sets how checkpoints are stored");
        break;
    }
    if (!parallel::recomputes_some_layers(plan_)) { return; }
    note(recompute_layers_flag(plan_),
         fmt::format("the training script must checkpoint the first {} layers only; gradient_checkpointing_enable() "
                     "checkpoints all: less memory and more recompute time than the estimate",
                     plan_.recompute_layers));
  }

  // Notes and command without Megatron-DeepSpeed.
  void groups() {
    using parallel::TpOverlap;
    if (plan_.tp > 1) {
      json_["tensor_parallel"] = {{"autotp_size", plan_.tp}, {"tp_overlap_comm", plan_.tp_overlap != TpOverlap::none}};
      if (plan_.sequence_parallel) {
        note("--sequence-parallel", "AutoTP has no sequence parallelism: every rank computes and stores whole norms");
      }
    }
    if (plan_.ep > 1) { json_["expert_parallel"] = {{"enabled", true}, {"autoep_size", plan_.ep}}; }
    if (run_.model.has_experts() && plan_.etp > 1) {
      note(fmt::format("--etp {}", plan_.etp),
           "AutoEP assigns whole experts only; AutoTP decides how other layers are split");
    }
    if (plan_.cp > 1 && plan_.cp_method == workload::ContextMethod::ulysses) {
      json_["sequence_parallel_size"] = plan_.cp;
      json_["data_parallel_size"] = plan_.dp;
    }
  }

  void note_missing() {
    using parallel::ScheduleKind;
    if (plan_.cp > 1 && plan_.cp_method == workload::ContextMethod::ring) {
      note(fmt::format("--cp {} --cp-method ring", plan_.cp),
           "DeepSpeed has no ring attention: it treats these ranks as replicas and refuses the batch sizes; valid: "
           "--cp-method ulysses");
    }
    if (plan_.vpp > 1) {
      note(fmt::format("--vpp {}", plan_.vpp),
           "DeepSpeed's pipeline has one chunk per stage: more bubble than the estimate");
    }
    if (plan_.schedule == ScheduleKind::interleaved && plan_.vpp == 1) {
      note("--schedule interleaved", "DeepSpeed runs 1f1b");
    }
    if (plan_.schedule == ScheduleKind::gpipe) { note("--schedule gpipe", "DeepSpeed runs 1f1b"); }
    if (plan_.schedule == ScheduleKind::dualpipe) {
      note("--schedule dualpipe", "DeepSpeed has no such schedule and runs 1f1b: more bubble than the estimate");
    }
    if (plan_.tp_overlap != parallel::TpOverlap::none) {
      note(fmt::format("--tp-overlap {}", config::enum_name(plan_.tp_overlap)),
           by_megatron_ ? "no option in Megatron-DeepSpeed: communication of tp is exposed"
                        : "AutoTP overlaps its all-reduces by its own method");
    }
    if (run_.job.adapter.rank > 0) {
      note(fmt::format("--lora {}", run_.job.adapter.rank),
           by_megatron_ ? "Megatron-DeepSpeed has no adapters: all weights are trained"
                        : "the training script creates adapters (for example with peft); no option does");
    }
    if (!by_megatron_) {
      note("--model " + run_.model.name,
           "the training script sets the model, its sequence length and its attention kernel; DeepSpeed's "
           "configuration does not");
      note_unsaid(run_, "the script's model must have", notes_);
    }
  }

  [[nodiscard]] std::string command() const {
    const std::string nodes = nodes_of(run_) > 1 ? fmt::format("--num_nodes {} ", nodes_of(run_)) : "";
    std::string line = fmt::format("deepspeed {}--num_gpus {} ", nodes, processes_per_node(run_));
    if (!by_megatron_) { return line + "train.py --deepspeed --deepspeed_config ds_config.json"; }
    line += "pretrain_gpt.py --deepspeed --deepspeed_config ds_config.json";
    for (const auto& section : arguments_.sections()) {
      for (const auto& setting : section.settings) {
        if (!setting.is_set) { continue; }
        line += " " + setting.name;
        if (!setting.value.empty()) { line += " " + setting.value; }
      }
    }
    return line;
  }

  [[nodiscard]] Json about() const {
    return {{"run", run_line(run_)},
            {"plan", plan_line(plan_)},
            {"options_as_of", kDeepSpeedSource},
            {"not_said_here", notes_.notes()},
            {"command", command()}};
  }

  void note(std::string_view flag, std::string_view text) { notes_.note(flag, text); }

  const TrainingRun& run_;
  const Plan& plan_;
  bool by_megatron_;
  Sheet arguments_, notes_;
  Json json_ = Json::object();
};

}  // namespace

Launch deepspeed(const TrainingRun& run) { return Config(run).write(); }

}  // namespace orrery::launch
