#include "orrery/estimate/estimator.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/estimate/explain.hpp"
#include "orrery/estimate/step.hpp"

namespace orrery::estimate {

using parallel::MemoryNeed;
using parallel::Plan;
using parallel::Program;

Estimator::Estimator(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack,
                     const parallel::Job& job)
    : model_(model), cluster_(cluster), stack_(stack), job_(job), fabric_(cluster) {
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

MemoryOutcome Estimator::memory(const Plan& plan) const {
  const Program program = parallel::lower(model_, job_, plan, cluster_, stack_);
  const Bytes need = program.memory[fullest_stage(program)].total();
  return {need, need <= capacity()};
}

Seconds Estimator::step_time(const Plan& plan) {
  return solve_step(parallel::lower(model_, job_, plan, cluster_, stack_), fabric_, stack_, solver_).time;
}

std::optional<Seconds> Estimator::feasible_step_time(const Plan& plan) {
  const Program program = parallel::lower(model_, job_, plan, cluster_, stack_);
  if (program.memory[fullest_stage(program)].total() > capacity()) { return std::nullopt; }
  return solve_step(program, fabric_, stack_, solver_).time;
}

results::Estimate Estimator::estimate(const Plan& plan, Detail detail) {
  const Program program = parallel::lower(model_, job_, plan, cluster_, stack_);
  const Step step = solve_step(program, fabric_, stack_, solver_, Explained::yes);
  const Context context{model_, cluster_, stack_, fabric_};
  results::Estimate result = describe(context, program, step);
  const std::size_t fullest = fullest_stage(program);
  const MemoryNeed& need = program.memory[fullest];
  result.memory = {need.weights,
                   need.gradients,
                   need.optimizer,
                   need.activations,
                   need.buffers,
                   capacity(),
                   static_cast<std::int64_t>(fullest)};
  result.feasible = result.memory.fits();
  if (!result.feasible) { result.infeasible_reason = "memory"; }
  if (detail.terms) {
    result.terms = terms(context, program, step);
    result.classes = classes(program, step);
  }
  return result;
}

}  // namespace orrery::estimate
