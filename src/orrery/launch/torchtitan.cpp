// torchtitan: the TOML job configuration of the releases that read one. Later ones take Python instead, where most
// fields keep their names (docs/guide/launch.md).
#include <array>

#include <fmt/format.h>

#include "orrery/launch/facts.hpp"
#include "orrery/launch/layout.hpp"
#include "orrery/launch/tools.hpp"
#include "orrery/launch/torchtitan_flavors.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/recompute.hpp"

namespace orrery::launch {

namespace {

using hardware::Precision;
using parallel::Plan;

constexpr std::string_view kTorchtitanSource =
    "pytorch/torchtitan torchtitan/config/job_config.py, of the releases that read TOML";

class JobConfig {
 public:
  explicit JobConfig(const TrainingRun& run) : run_(run), plan_(run.plan) {}

  Launch write() {
    sheet_.open("job");
    sheet_.value("description", quote(run_line(run_)));
    model();
    training();
    sheet_.open("parallelism");
    data_parallel();
    groups();
    pipeline();
    sheet_.open("activation_checkpoint");
    recompute();
    compile();
    quantize();
    note_missing();
    note_placement(run_, sheet_);
    return {text(), sheet_.notes(), sheet_.noted_fields()};
  }

 private:
  static std::string quote(std::string_view text) { return fmt::format("\"{}\"", text); }
  void set(const char* key, bool on) { sheet_.value(key, on ? "true" : "false"); }

  void model() {
    sheet_.open("model");
    const auto& model = run_.model;
    if (model.mtp_layers > 0) {
      sheet_.note(
          "--model " + model.name,
          fmt::format("torchtitan has no multi-token prediction; {} left out",
                      model.mtp_layers == 1 ? "its module is" : fmt::format("its {} modules are", model.mtp_layers)));
      sheet_.notes_field("mtp_layers");
    }
    if (const auto found = flavor_of(run_)) {
      sheet_.value("name", quote(found->name));
      sheet_.value("flavor", quote(found->flavor));
      compare_with_flavor(run_, *found, sheet_);
    } else {
      note_unsaid(run_, "torchtitan selects a model by name and flavor: set both under [model] to a model with",
                  sheet_);
    }
    std::string converters;
    if (run_.job.precision == Precision::fp8) { converters = quote("quantize.linear.float8"); }
    if (run_.job.precision == Precision::fp8 && run_.model.has_experts()) {
      converters += ", " + quote("quantize.grouped_mm.float8");
    }
    const auto recipe = run_.stack.fp8_recipe;
    if (!converters.empty() && recipe != hardware::Fp8Recipe::current) {
      sheet_.note(fmt::format("--fp8-recipe {}", hardware::name_of(recipe)),
                  "torchtitan scales tensors by their own largest values, row by row (nearest: current)");
    }
    if (!converters.empty()) { sheet_.value("converters", "[" + converters + "]"); }
  }

  // With pipeline stages a step passes a replica's whole batch to the pipeline, otherwise one micro-batch at a time.
  void training() {
    sheet_.open("training");
    const bool stages = plan_.pp > 1;
    sheet_.value("local_batch_size", stages ? run_.job.global_batch / plan_.dp : plan_.micro_batch);
    sheet_.value("global_batch_size", run_.job.global_batch);
    sheet_.value("seq_len", run_.job.seq);
    const bool wide = run_.job.precision == Precision::fp32 || run_.job.precision == Precision::tf32;
    sheet_.value("mixed_precision_param", quote(wide ? "float32" : "bfloat16"));
    sheet_.value("mixed_precision_reduce", quote("float32"));
    if (run_.stack.gradients.reduce_element < Bytes(4.0)) {
      sheet_.note("--reduce-precision", "torchtitan reduces gradients in fp32 only");
    }
    if (run_.job.precision == Precision::fp16 || run_.job.precision == Precision::fp4) {
      sheet_.note(fmt::format("--precision {}", hardware::name_of(run_.job.precision)),
                  "torchtitan does not train in this precision; bf16 is launched");
    }
    if (run_.job.precision == Precision::tf32) { sheet_.note("--precision tf32", "TF32 is a switch of PyTorch"); }
    offload();
  }

  void offload() {
    const auto& offload = plan_.offload;
    const bool state = offload.weights || offload.optimizer;
    set("enable_cpu_offload", state);
    if (state && !(offload.weights && offload.optimizer)) {
      sheet_.note(offload.weights ? "--offload weights" : "--offload optimizer",
                  "torchtitan offloads weights, gradients and optimizer together, and updates on the host");
    }
    if (offload.weights && offload.optimizer) {
      sheet_.note("--offload weights,optimizer", plan_.updates_on_host()
                                                     ? "torchtitan also offloads gradients"
                                                     : "torchtitan also offloads gradients, and updates on the host "
                                                       "(--optimizer-device host)");
    }
    if (offload.activations) {
      sheet_.note("--offload activations", "no option in torchtitan; activations stay on the device");
    }
  }

  // FSDP shards over data_parallel_shard_degree x context_parallel_degree ranks.
  void data_parallel() {
    const std::int64_t shards = plan_.zero == 0 ? 1 : plan_.shards();
    const bool whole = shards % plan_.cp == 0 && plan_.dp % (shards / plan_.cp) == 0;
    const std::int64_t sharded = plan_.zero == 0 ? 1 : whole ? shards / plan_.cp : plan_.dp;
    sheet_.value("data_parallel_replicate_degree", plan_.dp / sharded);
    sheet_.value("data_parallel_shard_degree", sharded);
    sheet_.value("fsdp_reshard_after_forward", quote(plan_.zero == 3 ? "always" : "never"));
    if (plan_.shard > 0 && plan_.zero > 0 && !whole) {
      sheet_.note(fmt::format("--shard {}", plan_.shard),
                  fmt::format("torchtitan shards over whole context groups: valid is a multiple of cp {}; all ranks "
                              "form one shard group here",
                              plan_.cp));
    }
    note_zero();
    note_reductions(run_, "torchtitan", plan_.pp == 1, sheet_);
    if (!plan_.dp_overlap) { sheet_.note("--no-dp-overlap", "FSDP always overlaps"); }
  }

  void note_zero() {
    if (plan_.zero == 0 && plan_.dp > 1 && (plan_.tp > 1 || plan_.pp > 1)) {
      sheet_.note("--zero 0", "torchtitan refuses unsharded replicas together with other parallelism; set --zero 3");
    }
    if (plan_.zero == 0 && plan_.cp > 1) { sheet_.note("--zero 0", "torchtitan shards weights over cp in any case"); }
    if (plan_.zero == 1) {
      sheet_.note("--zero 1",
                  "FSDP also shards gradients and weights; launched with the nearest setting, which keeps gathered "
                  "weights from forward to backward");
    }
    if (plan_.zero == 2) {
      sheet_.note("--zero 2",
                  "FSDP also shards weights; launched with the nearest setting, which keeps gathered weights from "
                  "forward to backward");
    }
    if (plan_.shard > 0 && plan_.zero == 0) { sheet_.note("--shard", "has no effect below --zero 1"); }
  }

  void groups() {
    sheet_.value("tensor_parallel_degree", plan_.tp);
    const bool async = plan_.tp_overlap != parallel::TpOverlap::none;
    set("enable_async_tensor_parallel", async);
    if (async) {
      sheet_.note(fmt::format("--tp-overlap {}", config::enum_name(plan_.tp_overlap)),
                  "asynchronous tensor parallelism splits GEMMs by its own method");
    }
    if (plan_.tp > 1 && !plan_.sequence_parallel) {
      sheet_.note("--sequence-parallel off", "tensor parallelism of torchtitan always includes sequence parallelism");
    }
    sheet_.value("context_parallel_degree", plan_.cp);
    if (plan_.cp > 1) {
      sheet_.value("context_parallel_rotate_method",
                   quote("alltoall"));  // ring attention, no gathering of keys and values
      if (plan_.cp_method == workload::ContextMethod::ulysses) {
        sheet_.note("--cp-method ulysses", "ring attention is launched; the TOML releases have no other method");
      }
    }
    if (run_.model.has_experts()) {
      sheet_.value("expert_parallel_degree", plan_.ep);
      sheet_.value("expert_tensor_parallel_degree", plan_.etp);
      if (plan_.etp != 1 && plan_.etp != plan_.tp) {
        sheet_.note(fmt::format("--etp {}", plan_.etp), "torchtitan accepts 1 or tp");
      }
      const bool per_node = run_.stack.dispatch.copies == hardware::TokenCopies::per_node;
      sheet_.value("expert_parallel_comm_backend", quote(per_node ? "deepep" : "standard"));
    }
  }

  void pipeline() {
    using parallel::ScheduleKind;
    sheet_.value("pipeline_parallel_degree", plan_.pp);
    if (plan_.schedule == ScheduleKind::zero_bubble) {
      sheet_.note(
          "--schedule zero-bubble",
          "torchtitan has no ZB-H1; InterleavedZeroBubble is nearest and requires at least two chunks per stage");
    }
    if (plan_.schedule == ScheduleKind::dualpipe) {
      sheet_.note("--schedule dualpipe",
                  "DualPipeV is nearest: every rank has two chunks and one copy of their weights");
    }
    if (plan_.pp == 1) {
      if (plan_.schedule == ScheduleKind::gpipe) {
        sheet_.note("--schedule gpipe", "has no effect without pipeline stages");
      }
      return;
    }
    sheet_.value("pipeline_parallel_schedule", quote(schedule()));
    sheet_.value("pipeline_parallel_microbatch_size", plan_.micro_batch);
    split_layers();
  }

  [[nodiscard]] std::string_view schedule() const {
    using parallel::ScheduleKind;
    switch (plan_.schedule) {
      case ScheduleKind::gpipe: return "GPipe";
      case ScheduleKind::one_f_one_b: return "1F1B";
      case ScheduleKind::interleaved: return "Interleaved1F1B";
      case ScheduleKind::zero_bubble: return "InterleavedZeroBubble";
      case ScheduleKind::dualpipe: return "DualPipeV";
    }
    return "1F1B";
  }

  // By counts where torchtitan derives the same split, else module by module.
  void split_layers() {
    using parallel::ScheduleKind;
    if (plan_.schedule == ScheduleKind::zero_bubble || plan_.schedule == ScheduleKind::dualpipe) {
      return leave_split_to_torchtitan();
    }
    const Layout layout = layout_of(run_.model, plan_);
    if (layout.split == LayerSplit::even || layout.split == LayerSplit::ends_counted) {
      const std::int64_t first = plan_.embedding_as_layer ? 1 : 0, last = plan_.head_as_layer ? 1 : 0;
      sheet_.value("pipeline_parallel_first_stage_less_layers", first);
      sheet_.value("pipeline_parallel_last_stage_less_layers", last);
      sheet_.value("pipeline_parallel_layers_per_stage",
                   (run_.model.layers + first + last) / static_cast<std::int64_t>(layout.layers.size()));
      return;
    }
    std::string list = "[\n";
    for (const auto& stage : module_names(layout)) {
      std::string names;
      for (const auto& name : stage) { names += (names.empty() ? "" : ", ") + quote(name); }
      list += "  [" + names + "],\n";
    }
    sheet_.value("module_fqns_per_model_part", list + "]");
  }

  // Schedules of two chunks per stage, where the plan has layers for one.
  void leave_split_to_torchtitan() {
    const Layout layout = layout_of(run_.model, plan_);
    sheet_.value("pipeline_parallel_first_stage_less_layers", std::int64_t{plan_.embedding_as_layer});
    sheet_.value("pipeline_parallel_last_stage_less_layers", std::int64_t{plan_.head_as_layer});
    std::string shares;
    for (const auto layers : layout.layers) { shares += fmt::format("{}{}", shares.empty() ? "" : " ", layers); }
    sheet_.note(
        fmt::format("--pp {}", plan_.pp),
        fmt::format("torchtitan distributes layers itself, over twice as many chunks; the plan has {}", shares));
    const bool recomputes = plan_.recompute != parallel::Recompute::none;
    if (plan_.schedule == parallel::ScheduleKind::dualpipe && plan_.ep > 1 && recomputes) {
      set("pipeline_parallel_expert_parallel_overlap", false);
      sheet_.note("--schedule dualpipe", "torchtitan overlaps the all-to-alls of experts only without recomputation");
    }
  }

  // n if recompute of some layers of each chunk is that of every n-th layer.
  [[nodiscard]] std::optional<std::int64_t> recomputed_layer_distance() const {
    const std::int64_t layers = run_.model.depth(), chunks = plan_.pp * plan_.vpp, some = plan_.recompute_layers;
    if (some == 0 || layers % (chunks * some) != 0 || layers == chunks * some) { return std::nullopt; }
    return layers / (chunks * some);
  }

  void recompute() {
    using parallel::Recompute;
    switch (plan_.recompute) {
      case Recompute::none: return sheet_.value("mode", quote("none"));
      case Recompute::selective:
        sheet_.value("mode", quote("selective"));
        sheet_.value("selective_ac_option", quote("op"));
        sheet_.note("--recompute selective",
                    "torchtitan selects operators by its own rules (option \"op\"): it stores attention and every "
                    "second GEMM; the plan recomputes the attention core");
        break;
      case Recompute::full:
        if (const auto distance = recomputed_layer_distance()) {
          sheet_.value("mode", quote("selective"));
          return sheet_.value("selective_ac_option", quote(std::to_string(*distance)));  // every n-th layer
        }
        sheet_.value("mode", quote("full"));
        break;
    }
    if (plan_.recompute_modules.any()) {
      sheet_.note(recompute_modules_flag(plan_),
                  "torchtitan has no choice of modules: memory and recompute time differ from the estimate");
    }
    if (!parallel::recomputes_some_layers(plan_)) { return; }
    sheet_.note(recompute_layers_flag(plan_),
                fmt::format("torchtitan recomputes in all layers, not in the first {} of each chunk: less memory and "
                            "more recompute time than the estimate",
                            plan_.recompute_layers));
  }

  void compile() {
    const bool async = plan_.tp_overlap != parallel::TpOverlap::none;
    if (!async && run_.job.precision != Precision::fp8) { return; }
    sheet_.open("compile");  // required by both
    set("enable", true);
    sheet_.value("components", R"(["model", "loss"])");
  }

  void quantize() {
    if (run_.job.precision != Precision::fp8) { return; }
    sheet_.open("quantize.linear.float8");
    sheet_.value("recipe_name", quote("rowwise"));
    sheet_.value("filter_fqns", R"(["output"])");
    if (!run_.model.has_experts()) { return; }
    sheet_.open("quantize.grouped_mm.float8");
    sheet_.value("fqns", R"(["experts"])");
  }

  void note_missing() {
    if (const auto kind = run_.stack.optimizer.kind; kind != hardware::OptimizerKind::adam) {
      sheet_.note(fmt::format("--optimizer {}", hardware::name_of(kind)),
                  "[optimizer] has Adam and AdamW; the training script must build another one");
    }
    if (run_.job.adapter.rank > 0) {
      sheet_.note(fmt::format("--lora {}", run_.job.adapter.rank),
                  "the TOML releases of torchtitan have no adapters: all weights are trained");
    } else if (run_.job.task == parallel::Task::finetune) {
      sheet_.note("--task finetune", "set the checkpoint to start from: [checkpoint] enable, initial_load_path");
    }
  }

  [[nodiscard]] std::string text() const {
    std::string text = heading(run_, "a job of torchtitan", kTorchtitanSource, sheet_.notes());
    text += comment("Add: [optimizer], [lr_scheduler], [checkpoint], dataset and tokenizer.");
    std::string arguments;
    for (const auto& argument : torchrun_arguments(run_)) { arguments += argument + " "; }
    text += comment("torchrun " + arguments + "-m torchtitan.train --job.config_file THIS.toml", 2);
    for (const auto& section : sheet_.sections()) {
      if (section.settings.empty()) { continue; }
      text += fmt::format("\n[{}]\n", section.title);
      for (const auto& setting : section.settings) { text += fmt::format("{} = {}\n", setting.name, setting.value); }
    }
    return text;
  }

  const TrainingRun& run_;
  const Plan& plan_;
  Sheet sheet_;
};

}  // namespace

Launch torchtitan(const TrainingRun& run) { return JobConfig(run).write(); }

}  // namespace orrery::launch
