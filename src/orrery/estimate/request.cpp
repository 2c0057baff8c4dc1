#include "orrery/estimate/request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::estimate {

namespace {

constexpr std::int64_t kMostDevices = 100'000'000;
constexpr std::int64_t kLongestSequence = 1'000'000'000;
constexpr std::int64_t kLargestBatch = 1'000'000'000;
constexpr std::int64_t kHighestRank = 65'536;
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostRows = 1'000'000'000'000;
constexpr double kMostWeights = 1e15;

void add_job_fields(config::Record<Request>& record) {
  record
      .required("model", &Request::model, "catalogue name, Hugging Face config.json, or Orrery model YAML",
                {.nonempty = true})
      .required("cluster", &Request::cluster, "catalogue name, or cluster YAML", {.nonempty = true})
      .optional("devices", &Request::devices, "accelerators in use; 0: as many as the cluster description has",
                {.min = 0, .max = kMostDevices})
      .optional("stack", &Request::stack, "software-stack profile, by name or YAML", {.nonempty = true})
      .optional("semantics", &Request::semantics, "whose arithmetic")
      .optional("task", &Request::task, "what the job does")
      .optional("global_batch", &Request::global_batch, "sequences per training step, all replicas together",
                {.min = 1, .max = kLargestBatch})
      .optional("seq", &Request::seq, "tokens per sequence in training; a vision model has its own",
                {.min = 1, .max = kLongestSequence})
      .optional("precision", &Request::precision, "number format of matrix inputs")
      .optional("prompt", &Request::prompt, "tokens given per sequence in inference",
                {.min = 1, .max = kLongestSequence})
      .optional("generate", &Request::generate, "tokens made per sequence in inference",
                {.min = 1, .max = kLongestSequence})
      .optional("batch", &Request::batch, "sequences in inference, all replicas together",
                {.min = 1, .max = kLargestBatch})
      .optional("lora", &Request::lora, "finetune: rank of low-rank adapters; 0: every weight is trained",
                {.min = 0, .max = kHighestRank})
      .optional("lora_targets", &Request::lora_targets, "projections that have adapters");
}

void add_plan_fields(config::Record<Request>& record) {
  const auto degree = config::Bounds<std::int64_t>{.min = 1, .max = kMostDevices};
  const auto open_degree = config::Bounds<std::optional<std::int64_t>>{.min = 1, .max = kMostDevices};
  record.optional("tp", &Request::tp, "tensor-parallel degree", degree)
      .optional("cp", &Request::cp, "context-parallel degree", degree)
      .optional("pp", &Request::pp, "pipeline stages", degree)
      .optional("ep", &Request::ep, "expert-parallel degree", degree)
      .optional("etp", &Request::etp,
                "tensor-parallel degree of routed experts; open: tp, or 1 where ep shares them out", open_degree)
      .optional("dp", &Request::dp, "data-parallel replicas; open: devices / (tp x cp x pp)", open_degree)
      .optional("vpp", &Request::vpp, "model chunks per pipeline stage (interleaving)", degree)
      .optional("micro_batch", &Request::micro_batch,
                "sequences per micro-batch of a replica; open: the largest that fits, up to 8", open_degree)
      .optional("sequence_parallel", &Request::sequence_parallel,
                "split norms, dropouts and residuals along the sequence over tp; open: off, but on where experts "
                "need it")
      .optional("zero", &Request::zero,
                "sharded over dp x cp: 0 nothing, 1 optimizer, 2 + gradients, 3 + weights (FSDP); open: 1",
                {.min = 0, .max = 3})
      .optional("shard", &Request::shard,
                "hybrid sharding (HSDP): ranks of dp x cp that share one sharded copy; 0: all of them",
                {.min = 0, .max = kMostDevices})
      .optional("recompute", &Request::recompute, "activations run again in backward; open: the least that fits")
      .optional("schedule", &Request::schedule, "pipeline schedule; open: 1f1b, or interleaved when vpp > 1")
      .optional("tp_overlap", &Request::tp_overlap, "tensor-parallel communication beside its products")
      .optional("cp_method", &Request::cp_method, "how context parallelism exchanges: keys and values, or heads")
      .optional("dp_overlap", &Request::dp_overlap,
                "data-parallel communication beside forward and backward; open: the stack's habit")
      .optional("first_stage_layers", &Request::first_stage_layers, "layers of the first stage; 0: an even share",
                {.min = 0, .max = kMostLayers})
      .optional("last_stage_layers", &Request::last_stage_layers, "layers of the last stage; 0: an even share",
                {.min = 0, .max = kMostLayers})
      .optional("embedding_as_layer", &Request::embedding_as_layer,
                "in sharing out layers over stages, the embedding counts as one")
      .optional("head_as_layer", &Request::head_as_layer, "in sharing out layers over stages, the head counts as one")
      .optional("gradient_precision", &Request::gradient_precision,
                "number format gradients are added up in; open: the stack's")
      .optional("reduce_precision", &Request::reduce_precision,
                "number format gradients are reduced in over replicas; open: the stack's")
      .optional("bucket", &Request::bucket,
                "gradients are reduced in groups of layers of so many weights; open: the stack's",
                {.min = 0.0, .max = kMostWeights})
      .optional(
          "table_sharding", &Request::table_sharding,
          "embedding tables over ranks: whole, by rows, ...; open: table, or row where ranks are more than tables")
      .optional("table_ranks", &Request::table_ranks,
                "ranks that share out one copy of the embedding tables; 0: all of them",
                {.min = 0, .max = kMostDevices})
      .optional("replicate_tables_below", &Request::replicate_tables_below,
                "embedding tables of fewer rows are replicated; 0: none", {.min = 0, .max = kMostRows})
      .optional("offload", &Request::offload, "what lives in a second memory tier: weights,activations,optimizer")
      .optional("placement", &Request::placement, "groups pinned to network dimensions, \"tp=0 pp=1 dp=1\"")
      .optional(
          "strategy", &Request::strategy,
          "mad-max: per class of layers, inside a node and between nodes, \"emb=(mp); mlp=(tp,ddp)\"; open: tables "
          "of recommenders mp, others ddp, dense layers fsdp")
      .optional(
          "local_batch", &Request::local_batch,
          "mad-max: samples of one copy of a class of layers, \"mlp=512\", instead of --global-batch or to check it")
      .optional("freeze", &Request::freeze,
                "mad-max, finetune: what is not trained, emb, bottom, top, mlp, transformer")
      .optional("memory_rule", &Request::memory_rule,
                "mad-max: 3 x weights (inference: 1 x) must fit a device's memory");
}

}  // namespace

const config::Record<Request>& request_record() {
  static const auto record = [] {
    config::Record<Request> fields("estimate", "One training step of a model on a cluster under a parallel plan.");
    add_job_fields(fields);
    add_plan_fields(fields);
    return fields;
  }();
  return record;
}

namespace {

// Fields of mad-max in a physical request.
std::vector<Diagnostic> foreign_fields(const Request& request) {
  std::vector<Diagnostic> found;
  const auto note = [&](bool typed, const char* flag) {
    if (typed) { found.push_back({{"", 0, 0, flag}, "is of --semantics mad-max"}); }
  };
  note(!request.strategy.empty(), "--strategy");
  note(!request.local_batch.empty(), "--local-batch");
  note(!request.freeze.empty(), "--freeze");
  note(!request.memory_rule, "--no-memory-rule");
  return found;
}

// Fields of a physical plan in a request of mad-max, as far as they are not what they are when nothing is said.
std::vector<Diagnostic> mad_max_problems(const Request& request) {
  std::vector<Diagnostic> found;
  const auto note = [&](bool typed, const char* flag, const char* instead) {
    if (typed) { found.push_back({{"", 0, 0, flag}, std::string("is of --semantics physical; mad-max ") + instead}); }
  };
  const char* const degrees = "has --strategy, and degrees follow from the machine";
  note(request.tp > 1, "--tp", degrees);
  note(request.cp > 1, "--cp", degrees);
  note(request.pp > 1, "--pp", degrees);
  note(request.ep > 1, "--ep", degrees);
  note(request.etp.has_value(), "--etp", degrees);
  note(request.dp.has_value(), "--dp", degrees);
  note(request.vpp > 1, "--vpp", degrees);
  note(request.zero.has_value(), "--zero", "has fsdp in --strategy");
  note(request.shard > 0, "--shard", "has fsdp in --strategy");
  const char* const nothing = "knows no such thing";
  note(request.micro_batch.has_value(), "--micro-batch", "has --local-batch");
  note(request.batch.has_value(), "--batch", "has --global-batch in every task");
  note(request.prompt.has_value(), "--prompt", "has --seq in every task");
  note(request.generate.has_value(), "--generate", nothing);
  note(request.sequence_parallel.has_value(), "--sequence-parallel", nothing);
  note(request.recompute.has_value(), "--recompute", nothing);
  note(request.schedule.has_value(), "--schedule", nothing);
  note(request.tp_overlap != parallel::TpOverlap::none, "--tp-overlap", nothing);
  note(request.dp_overlap.has_value(), "--dp-overlap", nothing);
  note(request.lora > 0, "--lora", "has --freeze");
  note(!request.offload.empty(), "--offload", nothing);
  note(!request.placement.empty(), "--placement", nothing);
  const char* const tables = "has emb in --strategy";
  note(request.table_sharding.has_value(), "--table-sharding", tables);
  note(request.table_ranks > 0, "--table-ranks", tables);
  note(request.replicate_tables_below > 0, "--replicate-tables-below", tables);
  if (!request.freeze.empty() && request.task != parallel::Task::finetune) {
    found.push_back({{"", 0, 0, "--freeze"}, "needs --task finetune"});
  }
  return found;
}

}  // namespace

std::vector<Diagnostic> problems(const Request& request) {
  if (request.semantics == Semantics::mad_max) { return mad_max_problems(request); }
  std::vector<Diagnostic> found = foreign_fields(request);
  const auto require = [&](bool holds, const char* flag, std::string_view message) {
    if (!holds) { found.push_back({{"", 0, 0, flag}, std::string(message)}); }
  };
  const bool serves = request.task == parallel::Task::inference;
  require(serves || !request.batch, "--batch", "is of --task inference; training has --global-batch");
  require(serves || !request.prompt, "--prompt", "is of --task inference; training has --seq");
  require(serves || !request.generate, "--generate", "is of --task inference");
  require(!serves || !request.global_batch, "--global-batch", "is of training; --task inference has --batch");
  require(!serves || !request.seq, "--seq", "is of training; --task inference has --prompt and --generate");
  require(request.lora == 0 || request.task == parallel::Task::finetune, "--lora", "needs --task finetune");
  require(request.lora > 0 || request.lora_targets == workload::Adapter::Targets::attention, "--lora-targets",
          "needs --lora: the rank of the adapters");
  const auto of_training = [&](bool typed, const char* flag) {
    require(!serves || !typed, flag, "is of training; in inference there is nothing for it to change");
  };
  of_training(request.bucket.has_value(), "--bucket");
  of_training(request.gradient_precision.has_value(), "--gradient-precision");
  of_training(request.reduce_precision.has_value(), "--reduce-precision");
  of_training(request.dp_overlap.has_value(), "--dp-overlap");
  of_training(request.tp_overlap != parallel::TpOverlap::none, "--tp-overlap");
  of_training(request.recompute.has_value(), "--recompute");
  of_training(request.schedule.has_value(), "--schedule");
  of_training(request.vpp > 1, "--vpp");
  const auto wide = [&](const std::optional<hardware::Precision>& precision, const char* flag) {
    require(!precision || hardware::element_size(*precision) >= Bytes(2.0), flag,
            "gradients are added up in at least 16 bits: bf16, fp16 or fp32");
  };
  wide(request.gradient_precision, "--gradient-precision");
  wide(request.reduce_precision, "--reduce-precision");
  const auto collect = [&](const auto& read) {
    if (!read) { found.insert(found.end(), read.error().diagnostics.begin(), read.error().diagnostics.end()); }
  };
  collect(offload_of(request));
  collect(placement_of(request));
  return found;
}

std::vector<std::string> needed_fields(parallel::Task task, Semantics semantics) {
  if (semantics == Semantics::mad_max) { return {}; }
  if (task == parallel::Task::inference) { return {"batch"}; }
  return {"global_batch"};
}

parallel::Job job_of(const Request& request, const workload::Model& model) {
  parallel::Job job;
  job.precision = request.precision;
  job.task = request.task;
  job.global_batch = request.global_batch.value_or(0);
  job.seq = request.seq.value_or(model.own_seq());
  job.adapter = {request.lora, request.lora_targets};
  if (job.is_inference()) {
    job.global_batch = request.batch.value_or(0);
    // A recommender answers at once.
    job.prompt = request.prompt.value_or(model.is_recommender() ? 1 : 0);
    job.generate = request.generate.value_or(model.is_recommender() ? 1 : 0);
    job.seq = job.prompt + job.generate - 1;  // the last token is made, and not read again
  }
  return job;
}

hardware::Stack stack_of(const Request& request, hardware::Stack stack) {
  if (request.gradient_precision) { stack.gradients.element = hardware::element_size(*request.gradient_precision); }
  if (request.reduce_precision) { stack.gradients.reduce_element = hardware::element_size(*request.reduce_precision); }
  if (request.bucket) { stack.gradients.bucket_parameters = *request.bucket; }
  return stack;
}

Result<parallel::Offload> offload_of(const Request& request) {
  parallel::Offload offload;
  const std::array<std::pair<std::string, bool*>, 3> known{
      {{"weights", &offload.weights}, {"activations", &offload.activations}, {"optimizer", &offload.optimizer}}};
  std::string_view rest = request.offload;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const std::string name(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == name; });
    if (found == known.end()) {
      const std::vector<std::string> names{"weights", "activations", "optimizer"};
      const auto near = nearest(name, names);
      return fail(Place{"", 0, 0, "--offload"},
                  fmt::format("{} cannot be offloaded; {}", quoted(name),
                              near ? fmt::format("did you mean {}?", quoted(*near)) : join(names, ", ") + " can"));
    }
    *found->second = true;
  }
  return offload;
}

namespace {

constexpr int kMostDimension = 99;

// "tp=0": a group and the dimension it is pinned to.
bool pin(std::string_view text, parallel::Placement& placement) {
  const std::array<std::pair<std::string_view, std::int8_t*>, 4> groups{
      {{"tp", &placement.tp}, {"cp", &placement.cp}, {"dp", &placement.dp}, {"pp", &placement.pp}}};
  const auto equals = std::min(text.find('='), text.size());
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == text.substr(0, equals); });
  const std::string_view number = text.substr(std::min(equals + 1, text.size()));
  int dimension = -1;
  const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), dimension);
  if (found == groups.end() || wrong != std::errc{} || end != number.data() + number.size()) { return false; }
  if (dimension < 0 || dimension > kMostDimension || *found->second >= 0) { return false; }
  *found->second = static_cast<std::int8_t>(dimension);
  return true;
}

}  // namespace

Result<parallel::Placement> placement_of(const Request& request) {
  parallel::Placement placement;
  std::string_view rest = request.placement;
  while (!rest.empty()) {
    const auto end = std::min(rest.find_first_of(" ,"), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (one.empty() || pin(one, placement)) { continue; }
    return fail(
        Place{"", 0, 0, "--placement"},
        fmt::format("{} is no group (tp, cp, dp or pp), each once, and network dimension, such as \"tp=0 dp=1\"; "
                    "expert groups lie where tp, cp and dp do",
                    quoted(one)));
  }
  return placement;
}

}  // namespace orrery::estimate
