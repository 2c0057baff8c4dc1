#include "orrery/validate/rules.hpp"
#include "orrery/validate/skip.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/validate/consistent.hpp"
#include "orrery/validate/formats.hpp"
#include "orrery/validate/spelling.hpp"
#include "orrery/validate/usual_choices.hpp"

namespace orrery::validate {

namespace {

using parallel::Recompute;

std::string name_of_diagnostic(const Diagnostic& diagnostic) {
  std::string_view flag = diagnostic.place.path;
  while (flag.starts_with('-')) { flag.remove_prefix(1); }
  return flag.empty() ? diagnostic.message : fmt::format("{}: {}", flag, diagnostic.message);
}

// Also the shape, where neither a catalogue entry nor known sizes give it.
std::optional<std::string> network_not_stated(std::vector<Need> needs, const NetworkColumns& network) {
  const ModelFacts* facts = model_facts(network.model);
  if (facts == nullptr || (facts->catalogue.empty() && facts->network.layers == 0)) {
    needs.insert(needs.begin(), {{network.layers.has_value(), "layers"},
                                 {network.hidden.has_value(), "hidden"},
                                 {network.heads.has_value(), "heads"}});
  }
  return not_stated(needs);
}

std::optional<Recompute> recompute_of(const TrainingRow& row, const StackFacts& defaults) {
  if (const auto stated = recompute_spelled(row.recompute)) { return stated; }
  return defaults.recompute;
}

// Sequence parallelism needs tensor parallelism.
bool sequence_parallel_of(const TrainingRow& row, const StackFacts& defaults) {
  return row.tp.value_or(1) > 1 && yes_or_no(row.sp).value_or(defaults.sequence_parallel);
}

// Degrees as stated, blank ones 1.
std::optional<std::string> degrees_do_not_divide(std::int64_t tp, std::int64_t cp, std::int64_t pp, std::int64_t gpus) {
  std::int64_t room = gpus;
  bool divides = true;
  for (const std::int64_t degree : {tp, cp, pp}) {
    divides = divides && degree <= room && room % degree == 0;
    room = divides ? room / degree : 1;
  }
  if (divides) { return std::nullopt; }
  return fmt::format("tp {}{} x pp {} do not divide {} gpus", tp, cp > 1 ? fmt::format(" x cp {}", cp) : "", pp, gpus);
}

// Micro-batch. Where not stated: 1 with pipeline stages, which gives the smallest bubble and is what recipes run;
// otherwise the estimator chooses.
std::optional<std::int64_t> micro_batch_of(const TrainingRow& row, const StackFacts& defaults) {
  const std::int64_t stages = row.pp.value_or(1);
  if (stages == 1) { return row.micro_batch; }
  if (!row.micro_batch) { return 1; }
  if (!defaults.splits_micro_batch) { return row.micro_batch; }
  return *row.micro_batch % stages == 0 ? *row.micro_batch / stages : 1;
}

// One chunk per layer of a stage, where stages have equal layers and the micro-batches are a multiple of the stages.
std::int64_t largest_vpp(const TrainingRow& row, const StackFacts& defaults, std::int64_t stages) {
  const std::int64_t layers = row.layers ? *row.layers + (defaults.ends_are_layers ? 2 : 0) : 0;
  const std::int64_t replicas = *row.gpus / (row.tp.value_or(1) * row.cp.value_or(1) * stages);
  const std::int64_t passes = *row.global_batch / std::max<std::int64_t>(1, replicas * row.micro_batch.value_or(1));
  const bool even = stages > 1 && layers > 0 && layers % stages == 0 && passes % stages == 0;
  return even ? layers / stages : 1;
}

// A recommender of the catalogue; its samples have no sequence length.
bool is_recommender(const NetworkColumns& network, const Parts& parts) {
  const ModelFacts* facts = model_facts(network.model);
  if (facts == nullptr || facts->catalogue.empty()) { return false; }
  const auto entry = parts.models.find(facts->catalogue);
  return entry != parts.models.end() && entry->second.is_recommender();
}

void place_tables(estimate::Request& request, const TrainingRow& row, const TableDefaults& defaults) {
  const bool one_node = *row.gpus <= row.gpus_per_node.value_or(*row.gpus);
  const workload::TableSharding usual = one_node ? defaults.one_node : defaults.nodes;
  request.tables.emplace();
  if (usual != workload::TableSharding::table) { request.tables->sharding = usual; }  // else the estimator's default
  request.tables->replicated_below = one_node ? defaults.replicated_below : defaults.replicated_below_nodes;
}

// Devices of a node: the row's, or the cluster's.
std::int64_t node_of(const TrainingRow& row, const hardware::Cluster& cluster) {
  return std::min(*row.gpus, row.gpus_per_node.value_or(cluster.dimensions.front().size));
}

bool has_no_degree(const TrainingRow& row) { return !row.tp && !row.pp && !row.cp && !row.dp; }

// XLA's partitioner chooses degrees itself; for other software they were given and are unknown.
std::optional<std::string> unknown_degrees(const TrainingRow& row, const MachineFacts& machine) {
  if (!has_no_degree(row) || machine.xla || *row.gpus <= *row.global_batch) { return std::nullopt; }
  return fmt::format("not stated: tp, pp (with 1 each, {} of {} gpus have no sequence)", *row.gpus - *row.global_batch,
                     *row.gpus);
}
std::optional<std::string> unknown_degrees(const InferenceRow&, const MachineFacts&) { return std::nullopt; }

estimate::Request request_of(const TrainingRow& row, const StackFacts& defaults, const workload::Model& model,
                             const hardware::Cluster& cluster) {
  estimate::Request request;
  request.global_batch = row.global_batch;
  request.seq = row.seq;
  request.tp = row.tp.value_or(1);
  request.cp = row.cp.value_or(1);
  request.pp = row.pp.value_or(1);
  request.ep = row.ep.value_or(1);
  request.dp = row.dp;
  request.vpp = request.pp > 1 ? row.vpp.value_or(1) : 1;
  if (!row.vpp && defaults.interleaves) { request.vpp = largest_vpp(row, defaults, *request.pp); }
  request.micro_batch = micro_batch_of(row, defaults);
  if (model.is_recommender()) { place_tables(request, row, defaults.tables); }
  request.sequence_parallel = sequence_parallel_of(row, defaults);
  request.zero = static_cast<int>(row.zero.value_or(defaults.zero));
  if (defaults.keeps_weights_with_stages && request.pp > 1) { request.zero = std::min(*request.zero, 2); }
  if (defaults.ends_are_layers && request.pp > 1) { request.embedding_as_layer = request.head_as_layer = true; }
  request.recompute = recompute_of(row, defaults);
  if (row.lora.value_or(0) > 0) {
    request.task = parallel::Task::finetune;
    request.lora = *row.lora;
    request.lora_targets = defaults.adapters;
  }
  if (has_no_degree(row)) {
    request.tp = default_tensor_parallelism(model, *row.gpus, node_of(row, cluster), *row.global_batch);
    request.sequence_parallel = request.tp > 1 && defaults.sequence_parallel;
  }
  return request;
}

estimate::Request request_of(const InferenceRow& row, const StackFacts&, const workload::Model&,
                             const hardware::Cluster&) {
  estimate::Request request;
  request.task = parallel::Task::inference;
  request.prompt = row.isl;
  request.generate = row.osl;
  request.batch = row.batch;
  request.tp = row.tp.value_or(1);
  request.pp = row.pp.value_or(1);
  request.ep = row.ep.value_or(1);
  return request;
}

// Why a row is not a job, checked before anything is built.
std::optional<std::string> missing_or_invalid(const TrainingRow& row, const Parts& parts) {
  auto missing = network_not_stated({{row.seq.has_value() || is_recommender(row, parts), "seq"},
                                     {row.gpus.has_value(), "gpus"},
                                     {row.global_batch.has_value(), "global_batch"}},
                                    row);
  if (missing) { return missing; }
  return degrees_do_not_divide(row.tp.value_or(1), row.cp.value_or(1), row.pp.value_or(1), *row.gpus);
}

std::optional<std::string> missing_or_invalid(const InferenceRow& row, const Parts&) {
  if (dashed(row.mode).find("static") == std::string::npos) {
    return fmt::format("mode {}: the number of sequences in flight is not stated", quote(row.mode));
  }
  auto missing = network_not_stated({{row.gpus.has_value(), "gpus"},
                                     {row.batch.has_value(), "batch_or_concurrency"},
                                     {row.isl.has_value(), "isl"},
                                     {row.osl.has_value(), "osl"}},
                                    row);
  if (missing) { return missing; }
  return degrees_do_not_divide(row.tp.value_or(1), 1, row.pp.value_or(1), *row.gpus);
}

// The model cannot be described: no other column helps.
std::optional<std::string> not_modelled_reason(const NetworkColumns& network) {
  const ModelFacts* facts = model_facts(network.model);
  if (facts != nullptr && !facts->skipped.empty()) { return std::string(facts->skipped); }
  return std::nullopt;
}

bool recompute_not_stated(const TrainingRow& row) { return !recompute_of(row, defaults_of(row)); }
bool recompute_not_stated(const InferenceRow&) { return false; }

std::int64_t longest_sequence(const TrainingRow& row) { return row.seq.value_or(1); }
std::int64_t longest_sequence(const InferenceRow& row) { return *row.isl + *row.osl; }

// Columns of machine and plan that were not taken as stated, apart from those of make_consistent.
template <class AnyKind>
std::vector<std::string> contradictions(const AnyKind& row, const hardware::Cluster& cluster,
                                        const estimate::Request& request) {
  std::vector<std::string> found;
  const auto& inner = cluster.dimensions.front();
  const bool has_nodes = cluster.dimensions.size() > 1 && !machine_of(row.gpu_type)->hosts_share_domain;
  if (has_nodes && row.gpus_per_node && *row.gpus > *row.gpus_per_node && inner.size != *row.gpus_per_node) {
    found.push_back(fmt::format("gpus_per_node {} -> {}", *row.gpus_per_node, inner.size));
  }
  if (auto format = taken_as(row.precision, request.precision); !format.empty()) {
    found.push_back("precision " + format);
  }
  if (request.tp != row.tp.value_or(1)) { found.push_back(fmt::format("tp blank -> {}", *request.tp)); }
  return found;
}

// Recompute that a row leaves open applies to as few layers as fit: recipes recompute no more (Megatron-Core:
// --recompute-num-layers).
void recompute_no_more_than_needed(Scenario& scenario) {
  if (scenario.plan.recompute != Recompute::full) { return; }
  estimate::Estimator estimator(scenario.model, scenario.cluster, *scenario.stack, scenario.job);
  if (!estimator.memory(scenario.plan).fits) { return; }
  const auto layers = parallel::layers_per_virtual_stage(scenario.model, scenario.plan);
  std::int64_t too_few = 0, enough = *std::max_element(layers.begin(), layers.end());
  while (enough - too_few > 1) {
    parallel::Plan plan = scenario.plan;
    plan.recompute_layers = (too_few + enough) / 2;
    (estimator.memory(plan).fits ? enough : too_few) = plan.recompute_layers;
  }
  scenario.plan.recompute_layers = enough;
}

template <class AnyKind>
Skippable<Scenario> scenario_of_row(const AnyKind& row, const Parts& parts) {
  if (auto reason = not_modelled_reason(row)) { return skip(std::move(*reason)); }
  if (!row.unreadable.empty()) { return skip(row.unreadable); }
  const MachineFacts* machine = machine_of(row.gpu_type);
  if (machine == nullptr) { return skip(unknown_accelerator(row.gpu_type)); }
  if (auto reason = missing_or_invalid(row, parts)) { return skip(std::move(*reason)); }
  if (auto reason = unknown_degrees(row, *machine)) { return skip(std::move(*reason)); }
  auto model = model_of(row, longest_sequence(row), parts);
  if (!model) { return skip(model.error()); }
  auto cluster = cluster_of(row, parts);
  if (!cluster) { return skip(cluster.error()); }
  const StackFacts& defaults = defaults_of(row);
  const auto precision = precision_of(row.precision, defaults, cluster->accelerator);
  if (!precision) { return skip(precision.error()); }
  estimate::Request request = request_of(row, defaults, *model, *cluster);
  request.precision = *precision;
  const bool is_frozen = request.task == parallel::Task::inference || request.lora > 0;
  if (is_frozen) { request.weight_format = stored_format(row.precision, *precision); }
  auto changes = contradictions(row, *cluster, request);
  if (defaults.expert_parallel_over_all && request.ep == 1 && model->has_experts()) {
    request.ep = std::gcd(model->experts.count, *row.gpus / *request.pp);
    if (request.ep != 1) { changes.push_back(fmt::format("ep {} -> {}", row.ep ? "1" : "blank", *request.ep)); }
  }
  for (auto& change : make_consistent(request, *model, cluster->devices)) { changes.push_back(std::move(change)); }
  auto scenario = resolved(request, std::move(*model), std::move(*cluster), defaults, parts);
  if (!scenario) { return scenario; }
  if (recompute_not_stated(row)) { recompute_no_more_than_needed(*scenario); }
  scenario->taken_as = join(changes, "; ");
  return scenario;
}

const hardware::Stack& stack_on(const hardware::Accelerator& accelerator, const StackFacts& defaults,
                                const Parts& parts) {
  const hardware::Stack& named = parts.stacks.find(defaults.stack)->second;
  const auto other = named.instead_on.find(accelerator.maker);
  return other == named.instead_on.end() ? named : parts.stacks.find(other->second)->second;
}

}  // namespace

Skippable<Scenario> resolved(const estimate::Request& request, workload::Model model, hardware::Cluster cluster,
                             const StackFacts& defaults, const Parts& parts) {
  if (hardware::is_integer(request.precision) && request.task != parallel::Task::inference) {
    return skip(fmt::format("precision: {} is a format of inference only", hardware::name_of(request.precision)));
  }
  const hardware::Stack& stack = stack_on(cluster.accelerator, defaults, parts);
  parallel::Plan plan = estimate::plan_with_defaults(request, model, cluster.devices, stack);
  const auto found = estimate::problems(request, model, cluster, stack, plan);
  if (!found.empty()) { return skip(name_of_diagnostic(found.front())); }
  plan = usual_choices(request, model, cluster, stack, plan);
  const parallel::Job job = estimate::job_of(request, model, stack);
  return Scenario{std::move(model), std::move(cluster), &stack, job, plan};
}

const StackFacts& defaults_of(const TrainingRow& row) {
  const StackFacts* recipe = recipe_of(row);
  return recipe != nullptr ? *recipe : stack_of(row.family, row.gpu_type);
}
const StackFacts& defaults_of(const InferenceRow& row) { return engine_of(row.engine, row.family).stack; }

Skippable<Scenario> scenario_of(const TrainingRow& row, const Parts& parts) { return scenario_of_row(row, parts); }
Skippable<Scenario> scenario_of(const InferenceRow& row, const Parts& parts) {
  InferenceRow whole = row;
  if (!row.gpus && row.tp) { whole.gpus = *row.tp * row.pp.value_or(1); }
  return scenario_of_row(whole, parts);
}

}  // namespace orrery::validate
