#include "orrery/estimate/request.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_record.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::estimate {

namespace {

constexpr std::int64_t kMostDevices = 100'000'000;
constexpr std::int64_t kLongestSequence = 1'000'000'000;
constexpr std::int64_t kLargestBatch = 1'000'000'000;
constexpr std::int64_t kHighestRank = 65'536;
constexpr std::int64_t kMostImages = 100'000;
constexpr std::int64_t kLargestImage = 16'384;  // pixels
constexpr double kMostWeights = 1e15;

void add_job_fields(config::Record<Request>& record) {
  record
      .required("model", &Request::model, "catalogue name, Hugging Face config.json, or Orrery model YAML",
                {.nonempty = true})
      .optional("as", &Request::as, "family to read a config.json as, whatever its model_type: llama, qwen3_moe, ...")
      .required("cluster", &Request::cluster, "catalogue name, or cluster YAML", {.nonempty = true})
      .optional("devices", &Request::devices, "accelerators in use; default: all of the cluster",
                {.min = 1, .max = kMostDevices})
      .optional("stack", &Request::stack,
                "software-stack profile, by name or YAML; default: vllm for inference, maxtext on TPUs, hugectr for "
                "recommenders, else megatron-core")
      .optional("semantics", &Request::semantics, "cost model: this one (physical), or the equations of MAD-Max")
      .optional("task", &Request::task, "kind of job")
      .optional("global_batch", &Request::global_batch, "sequences per training step, all replicas together",
                {.min = 1, .max = kLargestBatch})
      .optional("seq", &Request::seq, "tokens per sequence in training; vision models define it",
                {.min = 1, .max = kLongestSequence})
      .optional("images", &Request::images,
                "images in each sequence, of a model with a vision tower; their tokens are part of the sequence "
                "(inference: of the prompt); 0: text only, without the tower",
                {.min = 0, .max = kMostImages})
      .optional("image_size", &Request::image_size, "with --images: side of an image, pixels; default: the tower's",
                {.min = 1, .max = kLargestImage})
      .optional("precision", &Request::precision, "number format of GEMM inputs; int8: inference only (W8A8)")
      .optional(
          "fp8_recipe", &Request::fp8_recipe,
          "with --precision fp8, scales of GEMM inputs: per tensor, from earlier steps (delayed) or from the tensor "
          "itself (current), or per block of 128; default: the stack's")
      .optional("weight_format", &Request::weight_format,
                "format in which weights that are not trained are stored: in inference, or under --lora (QLoRA); "
                "default: that of GEMM inputs")
      .optional("kv_format", &Request::kv_format,
                "inference: format of the KV cache; default: 16 bits, or that of GEMM inputs where the stack does so")
      .optional("attention_precision", &Request::attention_precision,
                "number format of the inputs of attention's GEMMs; default: that of --precision, at least 16 bits")
      .optional("quantized", &Request::quantized,
                "inference: which layers have the narrow format; the others keep 16 bits: all, but-qkv (without the "
                "projections to queries, keys and values), but-attention (without all projections of attention), both "
                "also of recurrent "
                "layers, or experts (routed experts alone); default: in 4 bits the model's quantized_4_bit, else all")
      .optional("optimizer", &Request::optimizer,
                "optimizer: Adam, Adam with 8-bit moments, SGD with momentum, or Muon for the matrices of layers (Adam "
                "for the rest); default: adam")
      .optional("prompt", &Request::prompt, "prompt tokens per sequence in inference",
                {.min = 1, .max = kLongestSequence})
      .optional("generate", &Request::generate, "generated tokens per sequence in inference",
                {.min = 1, .max = kLongestSequence})
      .optional("batch", &Request::batch, "sequences in inference, all replicas together",
                {.min = 1, .max = kLargestBatch})
      .optional("lora", &Request::lora, "finetune: rank of low-rank adapters; 0: all weights are trained",
                {.min = 0, .max = kHighestRank})
      .optional("lora_targets", &Request::lora_targets, "projections that have adapters");
}

void add_gradient_fields(config::Record<Request>& record) {
  record
      .optional("gradient_precision", &Request::gradient_precision,
                "number format in which gradients are accumulated, of at least 16 bits; default: the stack's")
      .optional("reduce_precision", &Request::reduce_precision,
                "number format in which gradients are reduced over replicas, of at least 16 bits; default: the stack's")
      .optional(
          "reduce_every", &Request::reduce_every,
          "with --zero 2 or 3, when gradients are reduced: in every micro-batch, once a step (whole gradients are "
          "accumulated until then), or once a step with pipeline stages; default: the stack's")
      .optional("bucket", &Request::bucket, "number of weights in a gradient bucket; default: the stack's",
                {.min = 1.0, .max = kMostWeights});
}

void add_expansion_fields(config::Record<Request>& record) {
  record
      .optional(
          "expansion", &Request::expansion,
          "memory expansion: what does not fit in device memory is in the cluster's second tier, where kernels use "
          "it in place. A kernel reads both tiers one after the other (serial) or at the same time (parallel); "
          "default: none")
      .optional("expansion_classes", &Request::expansion_classes,
                "with --expansion: what may be in the second tier, of weights, gradients, optimizer, activations, "
                "kv_cache, tables, as in optimizer,gradients; the best split is found; default: all");
}

void add_mad_max_fields(config::Record<Request>& record) {
  record
      .optional(
          "strategy", &Request::strategy,
          "mad-max: strategy of each layer class, inside a node and between nodes, as in \"emb=(mp); mlp=(tp,ddp)\"; "
          "default: mp for tables, ddp for other layers of recommenders, fsdp for dense layers")
      .optional(
          "local_batch", &Request::local_batch,
          "mad-max: samples of one replica of a layer class, as in \"mlp=512\"; instead of --global-batch, or checked "
          "against it")
      .optional("freeze", &Request::freeze,
                "mad-max, finetune: layers that are not trained: emb, bottom, top, mlp, transformer")
      .optional("memory_rule", &Request::memory_rule,
                "mad-max: 3 x weights (inference: 1 x) must fit in the memory of a device; default: on");
}

}  // namespace

const config::Record<Request>& request_record() {
  static const auto record = [] {
    config::Record<Request> fields("estimate", "One training step of a model on a cluster under a parallel plan.");
    add_job_fields(fields);
    parallel::add_plan_choices(fields);
    add_gradient_fields(fields);
    add_expansion_fields(fields);
    add_mad_max_fields(fields);
    return fields;
  }();
  return record;
}

namespace {

// Fields of mad-max in a physical request.
std::vector<Diagnostic> foreign_fields(const Request& request) {
  std::vector<Diagnostic> found;
  const auto note = [&](bool typed, const char* flag) {
    if (typed) { found.push_back({{"", 0, 0, flag}, "is valid with --semantics mad-max only"}); }
  };
  note(!request.strategy.empty(), "--strategy");
  note(!request.local_batch.empty(), "--local-batch");
  note(!request.freeze.empty(), "--freeze");
  note(request.memory_rule.has_value(), request.memory_rule.value_or(true) ? "--memory-rule" : "--no-memory-rule");
  return found;
}

// Fields of a physical job in a request of mad-max, as far as they are not what they are when nothing is given.
std::vector<Diagnostic> mad_max_problems(const Request& request) {
  std::vector<Diagnostic> found;
  const auto note = [&](bool typed, std::string flag, std::string_view instead) {
    if (!typed) { return; }
    found.push_back(
        {{"", 0, 0, std::move(flag)}, fmt::format("is valid with --semantics physical only; mad-max {}", instead)});
  };
  for (const auto& choice : parallel::plan_choices()) {
    note(parallel::departs(choice, request), parallel::flag_of(choice), choice.in_mad_max);
  }
  note(request.batch.has_value(), "--batch", "has --global-batch in every task");
  note(request.prompt.has_value(), "--prompt", "has --seq in every task");
  note(request.generate.has_value(), "--generate", "has no such choice");
  note(request.images > 0, "--images", "has no vision towers");
  note(request.image_size.has_value(), "--image-size", "has no vision towers");
  note(request.lora > 0, "--lora", "has --freeze");
  note(request.optimizer.has_value(), "--optimizer", "counts 3 x weights whatever the optimizer");
  constexpr std::string_view kOneFormat = "has one format, --precision";
  note(request.weight_format.has_value(), "--weight-format", kOneFormat);
  note(request.kv_format.has_value(), "--kv-format", kOneFormat);
  note(request.attention_precision.has_value(), "--attention-precision", kOneFormat);
  note(request.quantized.has_value(), "--quantized", kOneFormat);
  note(request.fp8_recipe.has_value(), "--fp8-recipe", "has no casts");
  note(request.expansion.has_value(), "--expansion", "has one memory per device");
  note(!request.expansion_classes.empty(), "--expansion-classes", "has one memory per device");
  if (!request.freeze.empty() && request.task != parallel::Task::finetune) {
    found.push_back({{"", 0, 0, "--freeze"}, "needs --task finetune"});
  }
  return found;
}

// The parts of "optimizer,gradients".
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<hardware::TensorClass> class_named(std::string_view name) {
  for (const auto& [one, known] : config::EnumNames<hardware::TensorClass>::value) {
    if (known == name) { return one; }
  }
  return std::nullopt;
}

std::vector<Diagnostic> expansion_problems(const Request& request) {
  std::vector<Diagnostic> found;
  const auto complain = [&](std::string message) {
    found.push_back({{"", 0, 0, "--expansion-classes"}, std::move(message)});
  };
  if (!request.expansion && !request.expansion_classes.empty()) { complain("needs --expansion serial or parallel"); }
  std::vector<std::string> names;
  for (const auto& [one, name] : config::EnumNames<hardware::TensorClass>::value) { names.emplace_back(name); }
  for (const std::string_view part : parts_of(request.expansion_classes)) {
    if (class_named(part)) { continue; }
    const auto near = nearest(std::string(part), names);
    complain(fmt::format("{} is not a class of memory; {}", quote(std::string(part)),
                         near ? fmt::format("did you mean {}?", *near) : "valid: " + join(names, ", ")));
  }
  if (request.expansion && request.offload && request.offload->any()) {
    found.push_back(
        {{"", 0, 0, "--offload"},
         "copies what is in the second tier; with --expansion it is used in place, and one of both is valid"});
  }
  return found;
}

// Weights that are trained have at least 16 bits.
hardware::StorageFormat trained_format(hardware::Precision precision) {
  if (hardware::element_size(precision) > Bytes(2.0)) { return hardware::StorageFormat::fp32; }
  return precision == hardware::Precision::fp16 ? hardware::StorageFormat::fp16 : hardware::StorageFormat::bf16;
}

// Formats of storage and of attention.
std::vector<Diagnostic> format_problems(const Request& request) {
  std::vector<Diagnostic> found;
  const auto require = [&](bool holds, const char* flag, std::string message) {
    if (!holds) { found.push_back({{"", 0, 0, flag}, std::move(message)}); }
  };
  const bool is_inference = request.task == parallel::Task::inference;
  require(is_inference || !hardware::is_integer(request.precision), "--precision",
          fmt::format("{} is a format of inference only; valid in training: bf16, fp16, fp8, fp4, tf32, fp32",
                      quote(hardware::name_of(request.precision))));
  require(request.precision == hardware::Precision::fp8 || !request.fp8_recipe, "--fp8-recipe",
          "needs --precision fp8");
  require(is_inference || !request.kv_format, "--kv-format", "inference only: training keeps no KV cache");
  require(is_inference || !request.quantized, "--quantized", "inference only: training uses one format for all layers");
  const bool is_narrow = workload::narrowest_element(request.precision, request.weight_format) < 2.0;
  require(is_narrow || !is_inference || !request.quantized, "--quantized",
          "has no effect: no format has less than 16 bits; give --precision or --weight-format");
  if (request.weight_format && !is_inference && request.lora == 0) {
    const auto trained = trained_format(request.precision);
    require(*request.weight_format == trained, "--weight-format",
            fmt::format("{} needs weights that are not trained: --task inference, or --task finetune with --lora; "
                        "trained weights are stored in {}",
                        quote(hardware::name_of(*request.weight_format)), hardware::name_of(trained)));
  }
  const auto attention = request.attention_precision.value_or(hardware::Precision::bf16);
  require(hardware::element_size(attention) >= Bytes(2.0) || attention == hardware::Precision::fp8,
          "--attention-precision",
          fmt::format("{} is not a format of attention; valid: fp8, bf16, fp16, tf32, fp32",
                      quote(hardware::name_of(attention))));
  return found;
}

}  // namespace

std::vector<Diagnostic> problems(const Request& request) {
  if (request.semantics == Semantics::mad_max) { return mad_max_problems(request); }
  std::vector<Diagnostic> found = foreign_fields(request);
  const auto require = [&](bool holds, const std::string& flag, std::string_view message) {
    if (!holds) { found.push_back({{"", 0, 0, flag}, std::string(message)}); }
  };
  const bool is_inference = request.task == parallel::Task::inference;
  require(is_inference || !request.batch, "--batch",
          "is valid with --task inference only; training has --global-batch");
  require(is_inference || !request.prompt, "--prompt", "is valid with --task inference only; training has --seq");
  require(is_inference || !request.generate, "--generate", "is valid with --task inference only");
  require(!is_inference || !request.global_batch, "--global-batch", "training only; --task inference has --batch");
  require(!is_inference || !request.seq, "--seq", "training only; --task inference has --prompt and --generate");
  require(request.lora == 0 || request.task == parallel::Task::finetune, "--lora", "needs --task finetune");
  require(request.lora > 0 || request.lora_targets == workload::Adapter::Targets::attention, "--lora-targets",
          "needs --lora: the rank of the adapters");
  const auto of_training = [&](bool typed, const std::string& flag) {
    require(!is_inference || !typed, flag, "training only: no effect with --task inference");
  };
  of_training(request.optimizer.has_value(), "--optimizer");
  of_training(request.bucket.has_value(), "--bucket");
  of_training(request.reduce_every.has_value(), "--reduce-every");
  of_training(request.gradient_precision.has_value(), "--gradient-precision");
  of_training(request.reduce_precision.has_value(), "--reduce-precision");
  for (const auto& choice : parallel::plan_choices()) {
    if (choice.refused_in_inference) { of_training(parallel::departs(choice, request), parallel::flag_of(choice)); }
  }
  const auto wide = [&](const std::optional<hardware::Precision>& precision, const char* flag) {
    require(!precision || hardware::element_size(*precision) >= Bytes(2.0), flag,
            "gradients need at least 16 bits: bf16, fp16, tf32 or fp32");
  };
  wide(request.gradient_precision, "--gradient-precision");
  wide(request.reduce_precision, "--reduce-precision");
  for (auto& wrong : format_problems(request)) { found.push_back(std::move(wrong)); }
  for (auto& wrong : expansion_problems(request)) { found.push_back(std::move(wrong)); }
  return found;
}

std::vector<hardware::TensorClass> expansion_classes(const Request& request) {
  std::vector<hardware::TensorClass> found;
  for (const auto& [one, name] : config::EnumNames<hardware::TensorClass>::value) {
    const auto parts = parts_of(request.expansion_classes);
    if (parts.empty() || std::find(parts.begin(), parts.end(), name) != parts.end()) { found.push_back(one); }
  }
  return found;
}

std::vector<std::string> needed_fields(parallel::Task task, Semantics semantics) {
  if (semantics == Semantics::mad_max) { return {}; }
  if (task == parallel::Task::inference) { return {"batch"}; }
  return {"global_batch"};
}

parallel::Job job_of(const Request& request, const workload::Model& model, const hardware::Stack& stack) {
  parallel::Job job;
  job.pads_heads = stack.pads_heads;
  job.replicates_tokens = stack.dispatch.replicated_tokens && request.task == parallel::Task::inference;
  job.precision = request.precision;
  job.task = request.task;
  job.global_batch = request.global_batch.value_or(0);
  job.seq = request.seq.value_or(model.own_seq());
  job.adapter = {request.lora, request.lora_targets};
  job.formats = {request.weight_format, request.kv_format, request.attention_precision};
  if (job.is_inference()) {
    job.formats.quantized = workload::quantized_layers(model, request.quantized, job.precision, job.formats);
    job.global_batch = request.batch.value_or(0);
    // A recommender generates its answer in one pass.
    job.prompt = request.prompt.value_or(model.is_recommender() ? 1 : 0);
    job.generate = request.generate.value_or(model.is_recommender() ? 1 : 0);
    job.seq = job.prompt + job.generate - 1;  // the last generated token is not an input
  }
  return job;
}

hardware::Stack stack_of(const Request& request, hardware::Stack stack) {
  if (request.fp8_recipe) { stack.fp8_recipe = *request.fp8_recipe; }
  if (request.optimizer) { stack.optimizer.kind = *request.optimizer; }
  if (request.gradient_precision) { stack.gradients.element = hardware::element_size(*request.gradient_precision); }
  if (request.reduce_precision) { stack.gradients.reduce_element = hardware::element_size(*request.reduce_precision); }
  if (request.reduce_every) { stack.gradients.reduce_every = *request.reduce_every; }
  if (request.bucket) {
    stack.gradients.bucket_parameters = *request.bucket;
    stack.gradients.bucket_parameters_per_replica = 0.0;
  }
  return stack;
}

}  // namespace orrery::estimate
