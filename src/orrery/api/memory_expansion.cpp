#include "orrery/api/memory_expansion.hpp"

#include <optional>
#include <utility>

#include "orrery/hardware/records.hpp"

namespace orrery::api {

using hardware::ByClass;
using hardware::TensorClass;

ExpansionOptions expansion_of(const estimate::Request& request) {
  ExpansionOptions options{request.expansion.value_or(hardware::ExpansionRule::serial), {}};
  for (const TensorClass one : estimate::expansion_classes(request)) { options.classes[one] = true; }
  return options;
}

hardware::Cluster with_both_tiers(const hardware::Cluster& cluster, double reserve) {
  hardware::Cluster roomy = cluster;
  roomy.accelerator.memory += cluster.second_tier.memory / (1.0 - reserve);
  return roomy;
}

namespace {

ByClass<Bytes> sizes_of(const results::Memory& memory) {
  using C = TensorClass;
  ByClass<Bytes> sizes;
  sizes[C::weights] = memory.weights - memory.table_weights;
  sizes[C::optimizer] = memory.optimizer;
  sizes[C::gradients] = memory.gradients;
  sizes[C::activations] = memory.activations + memory.buffers;
  sizes[C::kv_cache] = memory.kv_cache;
  sizes[C::tables] = memory.table_weights;
  return sizes;
}

// Leaves in `memory` what is in the first tier.
void take_out(results::Memory& memory, const ByClass<double>& shares) {
  using C = TensorClass;
  const Bytes table_gradients = memory.tables - memory.table_weights - memory.table_state;
  const Bytes tables_out = shares[C::tables] * memory.table_weights;
  memory.tables -= tables_out + shares[C::optimizer] * memory.table_state + shares[C::gradients] * table_gradients;
  memory.weights -= tables_out + shares[C::weights] * (memory.weights - memory.table_weights);
  memory.table_weights -= tables_out;
  memory.table_state *= 1.0 - shares[C::optimizer];
  memory.optimizer *= 1.0 - shares[C::optimizer];
  memory.gradients *= 1.0 - shares[C::gradients];
  memory.activations *= 1.0 - shares[C::activations];
  memory.buffers *= 1.0 - shares[C::activations];
  memory.kv_cache *= 1.0 - shares[C::kv_cache];
}

constexpr const char* kNotModelled =
    "expansion: copies between tiers, caching, latency, and contention of devices for a shared pool";

}  // namespace

Expander::Expander(const Inputs& inputs, const parallel::Job& job, const ExpansionOptions& options)
    : inputs_(inputs),
      job_(job),
      options_(options),
      roomy_(with_both_tiers(inputs.cluster, inputs.stack.memory_reserve)) {
  both_ = std::make_unique<estimate::Estimator>(inputs_.model, roomy_, inputs_.stack, job_);
}

results::Estimate Expander::divided(const parallel::Plan& plan, const ByClass<double>& shares,
                                    estimate::Detail detail) const {
  hardware::Cluster cluster = roomy_;
  cluster.accelerator.tier_use = {options_.rule, inputs_.cluster.second_tier.rate(), shares};
  return estimate::Estimator(inputs_.model, cluster, inputs_.stack, job_).estimate(plan, detail);
}

results::Estimate Expander::price(const parallel::Plan& plan, std::int64_t global_batch, estimate::Detail detail) {
  job_.global_batch = global_batch;
  both_->set_global_batch(global_batch);
  const hardware::SecondTier& tier = inputs_.cluster.second_tier;
  const Bytes capacity = inputs_.cluster.accelerator.memory * (1.0 - inputs_.stack.memory_reserve);
  results::Estimate best = both_->estimate(plan, detail);
  best.memory.capacity = capacity;
  best.memory.second_tier = tier.memory;
  best.not_modelled.emplace_back(kNotModelled);
  const Bytes need = best.memory.total();
  if (need <= capacity) { return best; }
  best.feasible = false;
  best.infeasible_reason = "memory";
  if (!(tier.rate() > BytesPerSecond(0))) { return best; }
  estimate::SplitProblem problem =
      estimate::split_problem(both_->program(plan), roomy_.accelerator, options_.rule, tier.rate());
  problem.sizes = sizes_of(best.memory);
  problem.may_move = options_.classes;
  problem.excess = need - capacity;
  const ByClass<double> shares[] = {best_shares(problem), uniform_shares(problem)};
  const ByClass<double>* chosen = nullptr;
  for (const auto& one : shares) {
    if (chosen != nullptr && one == *chosen) { continue; }
    results::Estimate estimate = divided(plan, one, detail);
    if (chosen != nullptr && !(estimate.step_time < best.step_time)) { continue; }
    best = std::move(estimate);
    chosen = &one;
  }
  results::Expansion expansion{options_.rule, {}};
  for (std::size_t c = 0; c < hardware::kTensorClasses; ++c) {
    expansion.bytes.values[c] = chosen->values[c] * problem.sizes.values[c];
  }
  take_out(best.memory, *chosen);
  best.memory.capacity = capacity;
  best.memory.second_tier = tier.memory;
  best.memory.offloaded = min(problem.excess, problem.movable());
  best.expansion = expansion;
  best.not_modelled.emplace_back(kNotModelled);
  best.feasible = problem.excess <= min(tier.memory, problem.movable());
  best.infeasible_reason = best.feasible ? "" : "memory";
  return best;
}

}  // namespace orrery::api
