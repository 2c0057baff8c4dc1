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
  if (!cluster.nodes.empty()) { unlike_.emplace(model, cluster, stack); }
}

// The largest of all nodes.
Bytes Estimator::capacity() const {
  Bytes memory = cluster_.accelerator.memory;
  for (const hardware::Nodes& nodes : cluster_.nodes) { memory = max(memory, nodes.accelerator.memory); }
  return memory * (1.0 - stack_.memory_reserve);
}

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
  const Fullest found = fullest(program);
  return {program.memory[found.stage].total(), found.capacity, fits(program)};
}

// On nodes of several kinds, the stage with the largest part of its memory in use.
Estimator::Fullest Estimator::fullest(const Program& program) const {
  if (!unlike_) { return {fullest_stage(program), capacity()}; }
  Fullest found;
  double most = -1.0;
  const std::vector<Bytes> memory = unlike_->memory(program.plan);
  for (std::size_t stage = 0; stage < memory.size(); ++stage) {
    const Bytes capacity = memory[stage] * (1.0 - stack_.memory_reserve);
    const double used = program.memory[stage].total() / capacity;
    if (used <= most) { continue; }
    most = used;
    found = {stage, capacity};
  }
  return found;
}

bool Estimator::fits(const Program& program) const {
  if (!capacities().holds(program)) { return false; }
  if (!unlike_) { return true; }
  const Fullest found = fullest(program);
  return program.memory[found.stage].total() <= found.capacity;
}

parallel::Capacity Estimator::capacities() const { return {capacity(), cluster_.second_tier.memory}; }

bool Estimator::may_fit(const Plan& plan, const parallel::LowestMemory& lowest_memory) {
  trim_caches();
  return lowerer_.may_fit(job_, plan, lowest_memory, capacities());
}

Seconds Estimator::time_of(const parallel::Lowered& lowered, Ports ports) {
  const auto& [program, slice] = lowered;
  if (unlike_ && job_.is_inference()) { return unlike_->solve_batch(program).generation.total(); }
  if (unlike_) { return unlike_->solve(program, solver_, Explained::no, ports).step.time; }
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
  if (!lowered || (unlike_ && !fits(lowered->program))) { return std::nullopt; }
  return PlanPrice{time_of(*lowered), lowered->program.memory[fullest(lowered->program).stage].total()};
}

results::Memory Estimator::memory_of(const Program& program) const {
  const Fullest found = fullest(program);
  const MemoryNeed& need = program.memory[found.stage];
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
  memory.capacity = found.capacity;
  memory.stage = static_cast<std::int64_t>(found.stage);
  for (const auto& stage : program.memory) {
    if (stage.offloaded <= memory.offloaded) { continue; }
    memory.offloaded = stage.offloaded;
    memory.offloaded_by = stage.offloaded_by;
  }
  memory.second_tier = cluster_.second_tier.memory;
  return memory;
}

namespace {

std::optional<results::Expense> expense(std::optional<hardware::Rate> rate, Seconds time) {
  if (!rate) { return std::nullopt; }
  return results::Expense{rate->value * time.value(), std::move(rate->basis)};
}

}  // namespace

// Utilisation of the mean peak of all devices.
void Estimator::describe_nodes(const Program& program, results::Estimate& result) const {
  FlopsPerSecond sum;
  for (const hardware::Nodes& nodes : cluster_.nodes) {
    sum += static_cast<double>(nodes.count * cluster_.node_size()) * nodes.accelerator.peak(job_.precision);
  }
  const FlopsPerSecond mean = sum / static_cast<double>(cluster_.devices);
  result.mfu *= result.peak / mean;
  result.hfu *= result.peak / mean;
  result.peak = mean;
  result.nodes = unlike_->accelerators(program.plan);
  result.not_modelled.emplace_back(
      "layers and batches divided by the speed of the nodes: they are divided evenly, and the slowest decides");
}

results::Estimate Estimator::estimate_unlike(const Program& program, Detail detail) {
  const UnlikeNodes::Solved solved = unlike_->solve(program, solver_, Explained::yes, Ports::shared);
  results::Estimate result = describe({model_, cluster_, stack_, solved.fabric}, solved.program, solved.step);
  describe_nodes(program, result);
  if (detail.terms) {
    result.terms = terms({model_, solved.cluster, stack_, solved.fabric}, solved.program, solved.step);
  }
  if (detail.classes) { result.classes = classes(solved.program, solved.step); }
  return result;
}

results::Estimate Estimator::estimate_unlike_batch(const Program& program, Detail detail) {
  const UnlikeNodes::SolvedBatch solved = unlike_->solve_batch(program);
  results::Estimate result = describe({model_, cluster_, stack_, solved.fabric}, solved.program, solved.generation);
  describe_nodes(program, result);
  if (detail.terms) {
    result.terms = terms({model_, solved.cluster, stack_, solved.fabric}, solved.program, solved.generation);
  }
  return result;
}

results::Estimate Estimator::estimate(const Plan& plan, Detail detail) {
  trim_caches();
  const auto& [program, slice] = lowerer_.lower(job_, plan);
  WorkPrice& known = prices_.of(slice, plan);
  const Context context{model_, cluster_, stack_, fabric_};
  results::Estimate result;
  if (unlike_) {
    result = job_.is_inference() ? estimate_unlike_batch(program, detail) : estimate_unlike(program, detail);
  } else if (job_.is_inference()) {
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
