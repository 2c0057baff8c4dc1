#include "orrery/madmax/answer.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace orrery::madmax {

namespace {

std::string_view name_of(Task task) {
  constexpr std::array<std::string_view, 3> kNames = {"pretrain", "finetune", "inference"};
  return kNames[static_cast<std::size_t>(task)];
}

// The entry of `breakdown_s` that includes an event.
std::string_view category(const Event& event) {
  if (event.computes()) { return event.layer == nullptr ? "embedding" : "gemm"; }
  constexpr std::array<std::string_view, kCollectives> kNames = {"all_reduce", "all_gather", "reduce_scatter",
                                                                 "all_to_all"};
  return kNames[static_cast<std::size_t>(event.collective)];
}

// "MLPTop9", "TransformerFC0", "MoE3"; of tables "EMB".
std::string layer_name(const Event& event) {
  if (event.layer == nullptr) { return "EMB"; }
  constexpr std::array<std::string_view, 4> kParts = {"MLPBot", "Attn", "TransformerFC", "MLPTop"};
  const bool of_experts = event.role == Role::to_experts || event.role == Role::from_experts;
  const std::string_view part = of_experts ? "MoE" : kParts[static_cast<std::size_t>(event.layer->part)];
  return fmt::format("{}{}", part, event.layer->number);
}

// MAD-Max's name of a collective call. As in MAD-Max, some names end in a dot and some do not.
std::string_view suffix(const Event& event) {
  const bool of_mlp = event.layer != nullptr && (event.layer->part == Part::bottom || event.layer->part == Part::top);
  switch (event.role) {
    case Role::compute: return ".";
    case Role::gather: return "_c_wgt_ag.";
    case Role::scatter: return of_mlp ? "_c_wg_rs." : "_c_wg_rs";
    case Role::reduce: return event.layer == nullptr ? "_c_ar." : "_c_wg_ar";
    case Role::reduce_activation: return "_c_act_ar.";
    case Role::to_experts: return "_c_act_all2all1.";
    case Role::from_experts: return "_c_act_all2all2.";
    case Role::all_to_all: return "_c_all2all.";
  }
  return "";
}

results::MadMaxEvent named(const Event& event) {
  const char* pass = event.pass == Pass::forward ? "_f" : "_b";
  return {layer_name(event) + pass + std::string(suffix(event)), event.computes(), std::string(category(event)),
          event.start, event.duration};
}

results::MadMaxBreakdown breakdown_of(const Outcome& outcome) {
  return {outcome.gemm,
          outcome.lookup,
          outcome.of(Collective::all_to_all),
          outcome.of(Collective::all_reduce),
          outcome.of(Collective::all_gather),
          outcome.of(Collective::reduce_scatter),
          outcome.exposed()};
}

std::vector<results::MadMaxClass> classes_of(const Evaluator& evaluator, const Strategies& strategies) {
  std::vector<results::MadMaxClass> classes;
  for (const auto layer_class : evaluator.work().classes()) {
    const Strategy& strategy = strategies[layer_class];
    const auto count = copies(strategy, evaluator.system());
    classes.push_back({std::string(name_of(layer_class)), text_of(strategy), count,
                       shards(strategy, evaluator.system()), evaluator.job().global_batch / count});
  }
  return classes;
}

std::vector<std::string> not_modelled(const SampleWork& work) {
  std::vector<std::string> what = {"latency, group size and message size in collectives", "activation memory"};
  if (work.has(LayerClass::attention)) { what.emplace_back("GEMMs of attention scores"); }
  if (!work.is_recommender) { what.emplace_back("the output layer (vocabulary or classes)"); }
  what.insert(what.end(), work.not_counted.begin(), work.not_counted.end());
  return what;
}

// Executed FLOPs, from the GEMM time: every device is equally busy.
void add_flops(results::MadMaxEstimate& estimate, const Evaluator& evaluator) {
  const auto devices = static_cast<double>(estimate.devices);
  const double utilisation = evaluator.system().peak_utilisation;
  estimate.model_flops =
      evaluator.system().effective_peak(evaluator.work().dense_bytes) * estimate.breakdown.gemm * devices;
  estimate.mfu = estimate.breakdown.gemm / estimate.step_time * utilisation;
}

void check_memory(results::MadMaxEstimate& estimate, const Evaluator& evaluator, Bytes weights) {
  estimate.weights = weights;
  estimate.needed = evaluator.needed(weights);
  estimate.capacity = evaluator.system().memory;
  estimate.memory_rule = evaluator.job().memory_rule;
  if (!estimate.memory_rule || estimate.needed <= estimate.capacity) { return; }
  estimate.feasible = false;
  estimate.infeasible_reason =
      fmt::format("needs {:.2f} GB of {:.2f} GB per device: {:g} x weights (MAD-Max's rule; --no-memory-rule skips it)",
                  estimate.needed.value() / 1e9, estimate.capacity.value() / 1e9, memory_copies(evaluator.job().task));
}

}  // namespace

results::MadMaxEstimate estimate(Evaluator& evaluator, const Strategies& strategies, bool with_events) {
  std::vector<Event> events;
  const Answer answer = with_events ? evaluator.answer(strategies, events) : evaluator.answer(strategies);
  const SampleWork& work = evaluator.work();
  results::MadMaxEstimate result;
  result.model = work.model;
  result.cluster = evaluator.system().name;
  result.task = name_of(evaluator.job().task);
  result.frozen = text_of(evaluator.job().frozen, work);
  result.strategy = text_of(strategies, work);
  result.classes = classes_of(evaluator, strategies);
  result.devices = evaluator.system().devices;
  result.global_batch = evaluator.job().global_batch;
  result.seq = work.seq;
  result.step_time = answer.outcome.end;
  result.samples_per_s = static_cast<double>(result.global_batch) / answer.outcome.end.value();
  result.tokens_per_s = result.samples_per_s * static_cast<double>(work.seq);
  result.breakdown = breakdown_of(answer.outcome);
  add_flops(result, evaluator);
  check_memory(result, evaluator, answer.weights);
  result.usd_per_device_hour = evaluator.system().usd_per_device_hour;
  result.watts_per_device = evaluator.system().watts_per_device;
  result.not_modelled = not_modelled(work);
  for (const auto& event : events) { result.events.push_back(named(event)); }
  return result;
}

}  // namespace orrery::madmax
