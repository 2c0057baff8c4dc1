#include "orrery/validate/rules.hpp"
#include "orrery/validate/skip.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/validate/possible.hpp"
#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

using parallel::Recompute;

std::string name_of_diagnostic(const Diagnostic& diagnostic) {
  std::string_view flag = diagnostic.place.path;
  while (flag.starts_with('-')) { flag.remove_prefix(1); }
  return flag.empty() ? diagnostic.message : fmt::format("{}: {}", flag, diagnostic.message);
}

// Of a network that no entry of the catalogue and no sizes of its own stand for, the shape besides.
std::optional<std::string> not_stated(std::vector<Need> needs, const NetworkColumns& network) {
  const ModelFacts* facts = model_facts(network.model);
  if (facts == nullptr || (facts->catalogue.empty() && facts->network.layers == 0)) {
    needs.insert(needs.begin(), {{network.layers.has_value(), "layers"},
                                 {network.hidden.has_value(), "hidden"},
                                 {network.heads.has_value(), "heads"}});
  }
  return not_stated(needs);
}

// What a row says of recompute, by the beginning of its text: a choice, how whole layers are chosen (Megatron-Core's
// --recompute-method), or what of a layer is made again (its --recompute-modules).
constexpr std::array<std::pair<std::string_view, Recompute>, 15> kRecompute = {{
    {"none", Recompute::none},
    {"selective", Recompute::selective},
    {"core-attn", Recompute::selective},
    {"attention", Recompute::selective},
    {"attn", Recompute::selective},
    {"moe-act", Recompute::selective},
    {"layernorm", Recompute::selective},
    {"mla-up-proj", Recompute::selective},
    {"mlp", Recompute::selective},
    {"shared-experts", Recompute::selective},
    {"sac", Recompute::selective},  // torchtitan's selective activation checkpointing
    {"full", Recompute::full},
    {"uniform", Recompute::full},
    {"block", Recompute::full},
    {"activation-checkpointing", Recompute::full},
}};

// nullopt: not stated. So are texts that nobody knows.
std::optional<Recompute> stated_recompute(const TrainingRow& row) {
  const std::string text = dashed(row.recompute);
  for (const auto& [beginning, recompute] : kRecompute) {
    if (text.starts_with(beginning)) { return recompute; }
  }
  const auto answer = yes_or_no(text);
  if (!answer) { return std::nullopt; }
  return *answer ? Recompute::full : Recompute::none;
}

std::optional<Recompute> recompute_of(const TrainingRow& row, const StackFacts& habits) {
  if (const auto stated = stated_recompute(row)) { return stated; }
  return habits.recomputes_all ? std::optional(Recompute::full) : std::nullopt;
}

// Splitting the sequence means nothing without tensor parallelism.
bool sequence_parallel_of(const TrainingRow& row, const StackFacts& habits) {
  return row.tp.value_or(1) > 1 && yes_or_no(row.sp).value_or(habits.sequence_parallel);
}

// Degrees as stated, blank ones 1. Products stay small: none exceeds the devices.
std::optional<std::string> degrees_do_not_divide(std::int64_t tp, std::int64_t cp, std::int64_t pp, std::int64_t gpus) {
  std::int64_t room = gpus;
  bool divides = true;
  for (const std::int64_t degree : {tp, cp, pp}) {
    divides = divides && degree <= room && room % degree == 0;
    room = divides ? room / degree : 1;
  }
  if (divides) { return std::nullopt; }
  return fmt::format("tp {}{} x pp {} does not divide {} gpus", tp, cp > 1 ? fmt::format(" x cp {}", cp) : "", pp,
                     gpus);
}

// Sequences of a pass. Where a row does not say: one where there are stages, which fills a pipeline best and is what
// recipes run; otherwise open, for `settle`.
std::optional<std::int64_t> micro_batch_of(const TrainingRow& row, const StackFacts& habits) {
  const std::int64_t stages = row.pp.value_or(1);
  if (stages == 1) { return row.micro_batch; }
  if (!row.micro_batch) { return 1; }
  if (!habits.cuts_micro_batch) { return row.micro_batch; }
  return *row.micro_batch % stages == 0 ? *row.micro_batch / stages : 1;
}

// A chunk for every layer of a stage, where stages are of one size and micro-batches go round them evenly.
std::int64_t most_chunks(const TrainingRow& row, std::int64_t stages) {
  const std::int64_t layers = row.layers.value_or(0);
  const std::int64_t replicas = *row.gpus / (row.tp.value_or(1) * row.cp.value_or(1) * stages);
  const std::int64_t passes = *row.global_batch / std::max<std::int64_t>(1, replicas * row.micro_batch.value_or(1));
  const bool even = stages > 1 && layers > 0 && layers % stages == 0 && passes % stages == 0;
  return even ? layers / stages : 1;
}

// A recommender: a network of the catalogue whose samples have no length.
bool is_recommender(const NetworkColumns& network, const Parts& parts) {
  const ModelFacts* facts = model_facts(network.model);
  if (facts == nullptr || facts->catalogue.empty()) { return false; }
  const auto entry = parts.models.find(facts->catalogue);
  return entry != parts.models.end() && entry->second.is_recommender();
}

void lay_out_tables(estimate::Request& request, const TrainingRow& row, const TableHabits& habits) {
  const bool one_node = *row.gpus <= row.gpus_per_node.value_or(*row.gpus);
  const workload::TableSharding usual = one_node ? habits.one_node : habits.nodes;
  request.tables.emplace();
  if (usual != workload::TableSharding::table) { request.tables->sharding = usual; }  // else whole where they go round
  request.tables->replicated_below = one_node ? habits.replicated_below : habits.replicated_below_nodes;
}

// Devices of a node, as far as the row says it.
std::int64_t node_of(const TrainingRow& row, const hardware::Cluster& cluster) {
  return std::min(*row.gpus, row.gpus_per_node.value_or(cluster.dimensions.front().size));
}

bool states_no_degree(const TrainingRow& row) { return !row.tp && !row.pp && !row.cp && !row.dp; }

// XLA's partitioner slices layers by itself; other software would have been told how, and nobody knows what.
std::optional<std::string> unknown_degrees(const TrainingRow& row, const MachineFacts& machine) {
  if (!states_no_degree(row) || machine.xla || *row.gpus <= *row.global_batch) { return std::nullopt; }
  return fmt::format("not stated: tp, pp (one each leaves {} of {} gpus without a sequence)",
                     *row.gpus - *row.global_batch, *row.gpus);
}
std::optional<std::string> unknown_degrees(const InferenceRow&, const MachineFacts&) { return std::nullopt; }

estimate::Request request_of(const TrainingRow& row, const StackFacts& habits, const workload::Model& model,
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
  if (!row.vpp && habits.interleaves) { request.vpp = most_chunks(row, *request.pp); }
  request.micro_batch = micro_batch_of(row, habits);
  if (model.is_recommender()) { lay_out_tables(request, row, habits.tables); }
  request.sequence_parallel = sequence_parallel_of(row, habits);
  request.zero = static_cast<int>(row.zero.value_or(habits.zero));
  request.recompute = recompute_of(row, habits);
  if (row.lora.value_or(0) > 0) {
    request.task = parallel::Task::finetune;
    request.lora = *row.lora;
    request.lora_targets = habits.adapters;
  }
  if (states_no_degree(row)) {
    request.tp = open_tensor_parallelism(model, *row.gpus, node_of(row, cluster), *row.global_batch);
    request.sequence_parallel = request.tp > 1 && habits.sequence_parallel;
  }
  return request;
}

estimate::Request request_of(const InferenceRow& row, const StackFacts&, const workload::Model&,
                             const hardware::Cluster&) {
  estimate::Request request;
  request.task = parallel::Task::inference;
  request.prompt = row.isl;
  request.generate = row.osl;
  if (engine_of(row.engine, row.family).one_by_one) { request.micro_batch = 1; }
  request.batch = row.batch;
  request.tp = row.tp.value_or(1);
  request.pp = row.pp.value_or(1);
  request.ep = row.ep.value_or(1);
  return request;
}

// What keeps a row from being a job, before anything is built of it.
std::optional<std::string> unfit(const TrainingRow& row, const Parts& parts) {
  auto missing = not_stated({{row.seq.has_value() || is_recommender(row, parts), "seq"},
                             {row.gpus.has_value(), "gpus"},
                             {row.global_batch.has_value(), "global_batch"}},
                            row);
  if (missing) { return missing; }
  return degrees_do_not_divide(row.tp.value_or(1), row.cp.value_or(1), row.pp.value_or(1), *row.gpus);
}

std::optional<std::string> unfit(const InferenceRow& row, const Parts&) {
  if (dashed(row.mode).find("static") == std::string::npos) {
    return fmt::format("mode {}: how many sequences are in flight is not stated", quoted(row.mode));
  }
  auto missing = not_stated({{row.gpus.has_value(), "gpus"},
                             {row.batch.has_value(), "batch_or_concurrency"},
                             {row.isl.has_value(), "isl"},
                             {row.osl.has_value(), "osl"}},
                            row);
  if (missing) { return missing; }
  return degrees_do_not_divide(row.tp.value_or(1), 1, row.pp.value_or(1), *row.gpus);
}

// Of no use to ask for more: a network that no model describes.
std::optional<std::string> foreign(const NetworkColumns& network) {
  const ModelFacts* facts = model_facts(network.model);
  if (facts != nullptr && !facts->skipped.empty()) { return std::string(facts->skipped); }
  return std::nullopt;
}

bool leaves_recompute_open(const TrainingRow& row) { return !recompute_of(row, habits_of(row)); }
bool leaves_recompute_open(const InferenceRow&) { return false; }

std::int64_t longest_sequence(const TrainingRow& row) { return row.seq.value_or(1); }
std::int64_t longest_sequence(const InferenceRow& row) { return *row.isl + *row.osl; }

// What of the machine's and the plan's columns was not taken as stated, before the plan was made possible.
template <class AnyKind>
std::vector<std::string> taken_otherwise(const AnyKind& row, const hardware::Cluster& cluster,
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

template <class AnyKind>
OrSkip<Scenario> scenario_of_row(const AnyKind& row, const Parts& parts) {
  if (auto reason = foreign(row)) { return skip(std::move(*reason)); }
  if (!row.unreadable.empty()) { return skip(row.unreadable); }
  const MachineFacts* machine = machine_of(row.gpu_type);
  if (machine == nullptr) { return skip(unknown_accelerator(row.gpu_type)); }
  if (auto reason = unfit(row, parts)) { return skip(std::move(*reason)); }
  if (auto reason = unknown_degrees(row, *machine)) { return skip(std::move(*reason)); }
  auto model = model_of(row, longest_sequence(row), parts);
  if (!model) { return skip(model.error()); }
  auto cluster = cluster_of(row, parts);
  if (!cluster) { return skip(cluster.error()); }
  const StackFacts& habits = habits_of(row);
  const auto precision = precision_of(row.precision, habits, cluster->accelerator);
  if (!precision) { return skip(precision.error()); }
  estimate::Request request = request_of(row, habits, *model, *cluster);
  request.precision = *precision;
  auto changes = taken_otherwise(row, *cluster, request);
  if (habits.spreads_experts && request.ep == 1 && model->has_experts()) {
    request.ep = std::gcd(model->experts.count, *row.gpus / *request.pp);
    if (request.ep != 1) { changes.push_back(fmt::format("ep {} -> {}", row.ep ? "1" : "blank", *request.ep)); }
  }
  for (auto& change : make_possible(request, *model, cluster->devices)) { changes.push_back(std::move(change)); }
  auto scenario = settled(request, std::move(*model), std::move(*cluster), habits, parts);
  if (!scenario) { return scenario; }
  scenario->least_recompute = leaves_recompute_open(row);
  scenario->taken_as = join(changes, "; ");
  return scenario;
}

}  // namespace

OrSkip<Scenario> settled(const estimate::Request& request, workload::Model model, hardware::Cluster cluster,
                         const StackFacts& habits, const Parts& parts) {
  const hardware::Stack& stack = parts.stacks.find(habits.stack)->second;
  const auto plan = estimate::settle(request, model, cluster, stack);
  if (!plan) { return skip(name_of_diagnostic(plan.error().diagnostics.front())); }
  const parallel::Job job = estimate::job_of(request, model);
  return Scenario{std::move(model), std::move(cluster), &stack, job, plan->plan};
}

const StackFacts& habits_of(const TrainingRow& row) {
  const StackFacts* recipe = recipe_of(row);
  return recipe != nullptr ? *recipe : stack_of(row.family, row.gpu_type);
}
const StackFacts& habits_of(const InferenceRow& row) { return engine_of(row.engine, row.family).stack; }

OrSkip<Scenario> scenario_of(const TrainingRow& row, const Parts& parts) { return scenario_of_row(row, parts); }
OrSkip<Scenario> scenario_of(const InferenceRow& row, const Parts& parts) {
  InferenceRow whole = row;
  if (!row.gpus && row.tp) { whole.gpus = *row.tp * row.pp.value_or(1); }
  return scenario_of_row(whole, parts);
}

}  // namespace orrery::validate
