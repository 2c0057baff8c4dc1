#include "orrery/estimate/estimator.hpp"

#include <algorithm>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/estimate/explain.hpp"
#include "orrery/estimate/inference.hpp"
#include "orrery/estimate/step.hpp"
#include "orrery/hardware/expenses.hpp"

namespace orrery::estimate {

using parallel::MemoryNeed;
using parallel::Plan;
using parallel::Program;

Estimator::Estimator(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack,
                     const parallel::Job& job)
    : model_(model),
      cluster_(cluster),
      stack_(stack),
      job_(job),
      fabric_(cluster, stack.transfers),
      collectives_(fabric_),
      lowerer_(model, cluster, stack),
      prices_(model, collectives_),
      solver_(stack, collectives_) {
  ORRERY_ASSERT(cluster.accelerator.peak(job.precision) > FlopsPerSecond(0));
}

Bytes Estimator::capacity() const { return cluster_.accelerator.memory * (1.0 - stack_.memory_reserve); }

namespace {

std::size_t fullest_stage(const Program& program) {
  const auto less = [](const MemoryNeed& a, const MemoryNeed& b) { return a.total() < b.total(); };
  const auto it = std::max_element(program.memory.begin(), program.memory.end(), less);
  return static_cast<std::size_t>(it - program.memory.begin());
}

}  // namespace

void Estimator::trim_caches() {
  if (std::max(lowerer_.kept(), prices_.kept()) < kMostKept) { return; }
  prices_.forget();
  lowerer_.forget();
}

MemoryOutcome Estimator::memory(const Plan& plan) {
  trim_caches();
  const Program& program = lowerer_.lower(job_, plan).program;
  return {program.memory[fullest_stage(program)].total(), capacity(), capacities().holds(program)};
}

parallel::Capacity Estimator::capacities() const { return {capacity(), cluster_.second_tier.memory}; }

bool Estimator::may_fit(const Plan& plan, const parallel::LowestMemory& lowest_memory) {
  trim_caches();
  return lowerer_.may_fit(job_, plan, lowest_memory, capacities());
}

Seconds Estimator::time_of(const parallel::Lowered& lowered, Ports ports) {
  const auto& [program, slice] = lowered;
  WorkPrice& known = prices_.of(slice, program.plan);
  if (job_.is_inference()) { return solve_inference(program, fabric_, known.blocks).total(); }
  return solver_.solve(program, &known, Explained::no, ports).time;
}

const Program& Estimator::program(const Plan& plan) {
  trim_caches();
  return lowerer_.lower(job_, plan).program;
}

Seconds Estimator::step_time(const Plan& plan, Ports ports) {
  trim_caches();
  return time_of(lowerer_.lower(job_, plan), ports);
}

std::optional<PlanPrice> Estimator::price(const Plan& plan) {
  trim_caches();
  const auto lowered = lowerer_.lower_within(job_, plan, capacities());
  if (!lowered) { return std::nullopt; }
  return PlanPrice{time_of(*lowered), lowered->program.memory[fullest_stage(lowered->program)].total()};
}

results::Memory Estimator::memory_of(const Program& program) const {
  const std::size_t fullest = fullest_stage(program);
  const MemoryNeed& need = program.memory[fullest];
  results::Memory memory;
  memory.weights = need.weights;
  memory.gradients = need.gradients;
  memory.optimizer = need.optimizer;
  memory.activations = need.activations;
  memory.buffers = need.buffers;
  memory.kv_cache = need.kv_cache;
  memory.tables = need.tables;
  memory.table_weights = need.table_weights;
  memory.table_state = need.table_state;
  memory.capacity = capacity();
  memory.stage = static_cast<std::int64_t>(fullest);
  for (const auto& stage : program.memory) { memory.offloaded = max(memory.offloaded, stage.offloaded); }
  memory.second_tier = cluster_.second_tier.memory;
  return memory;
}

namespace {

std::optional<results::Expense> expense(std::optional<hardware::Rate> rate, Seconds time) {
  if (!rate) { return std::nullopt; }
  return results::Expense{rate->value * time.value(), std::move(rate->basis)};
}

}  // namespace

results::Estimate Estimator::estimate(const Plan& plan, Detail detail) {
  trim_caches();
  const auto& [program, slice] = lowerer_.lower(job_, plan);
  WorkPrice& known = prices_.of(slice, plan);
  const Context context{model_, cluster_, stack_, fabric_};
  results::Estimate result;
  if (job_.is_inference()) {
    const Generation generation = solve_inference(program, fabric_, known.blocks);
    result = describe(context, program, generation);
    if (detail.terms) { result.terms = terms(context, program, generation); }
  } else {
    const Step& step = solver_.solve(program, &known, Explained::yes);
    result = describe(context, program, step);
    if (detail.terms) { result.terms = terms(context, program, step); }
    if (detail.classes) { result.classes = classes(program, step); }
  }
  result.cost = expense(hardware::cost_rate(cluster_), result.step_time);
  result.energy = expense(hardware::power(cluster_), result.step_time);
  result.memory = memory_of(program);
  result.feasible = result.memory.fits();
  if (!result.feasible) {
    const bool by_tables = result.memory.tables > result.memory.capacity;
    result.infeasible_reason = by_tables ? "memory of embedding tables" : "memory";
  }
  return result;
}

}  // namespace orrery::estimate
