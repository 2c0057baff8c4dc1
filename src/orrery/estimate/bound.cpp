// The lower bound that a search prunes by: Estimator::step_time_bound.
//
// For every stage s, for all schedules but DualPipe:
//   step >= fill(s) + max( m (F(s) + B(s)) + drain(s), m (F(s) + B(s) + W(s)) )
// where F, B and W are the stage's compute times per micro-batch of forward, backward, and weight gradients where the
// schedule runs these as separate tasks (otherwise B includes them). fill(s): the first micro-batch's forward through
// the first chunk of every stage before s; s cannot start earlier. drain(s): the last backward through the same chunks;
// the last backward on s is that of its own first chunk or runs before it. Transfers, data-parallel communication and
// the optimizer only make a step longer. Under DualPipe a rank does the work of two stages, each for half of the
// micro-batches. A pair takes at least the time of its kernels, and that of its collectives: with pairs, the bound is
// that of the busiest stage.
#include <algorithm>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/estimate/estimator.hpp"

namespace orrery::estimate {

using parallel::Plan;

void Estimator::divide_layers(const Plan& plan) {
  const Division division{plan.schedule == parallel::ScheduleKind::dualpipe,
                          plan.pp,
                          plan.vpp,
                          plan.first_stage_layers,
                          plan.last_stage_layers,
                          plan.embedding_as_layer,
                          plan.head_as_layer};
  if (!starts_.empty() && division == division_) { return; }
  division_ = division;
  starts_.assign(1, 0);
  for (const std::int64_t share : parallel::layers_per_virtual_stage(model_, plan)) {
    starts_.push_back(starts_.back() + share);
  }
}

Seconds Estimator::step_time_bound(const Plan& plan) {
  if (job_.is_inference() || unlike_) { return Seconds(0); }
  trim_caches();
  const WorkPrice& parts = prices_.of(lowerer_.slice(job_, plan), plan);
  divide_layers(plan);
  const auto last = static_cast<std::int64_t>(starts_.size()) - 2;
  // One micro-batch's work on virtual stage q.
  const auto work_of = [&](std::int64_t q) {
    const auto i = static_cast<std::size_t>(q);
    PartTime work = parts.layers_before[static_cast<std::size_t>(starts_[i + 1])];
    work -= parts.layers_before[static_cast<std::size_t>(starts_[i])];
    if (q == 0) { work += parts.embedding; }
    if (q == last) { work += parts.head; }
    return work;
  };
  const bool bidirectional = plan.schedule == parallel::ScheduleKind::dualpipe;
  const bool pairs = bidirectional || parallel::overlaps_dispatch(model_, plan, stack_);
  const auto m = static_cast<double>(parallel::micro_batches(job_, plan)) * (bidirectional ? 0.5 : 1.0);
  const std::int64_t chunks = bidirectional ? 2 : plan.vpp;
  Seconds longest, fill, drain;  // fill, drain: of the stages before this one
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    const PartTime first = work_of(stage);  // chunk 0 of every schedule
    PartTime work = first;
    for (std::int64_t c = 1; c < chunks; ++c) { work += work_of(parallel::virtual_stage(plan, stage, c)); }
    const Seconds passes = m * (work.forward + work.backward);
    if (pairs) {
      longest = max(longest, m * max(work.kernels, work.calls));
      continue;
    }
    longest = max(longest, fill + max(passes + m * work.weight, passes + drain));
    fill += first.forward;
    drain += first.backward;
  }
  // Rounding differs between orders of summation. The solver's rounding to ticks only makes a step longer.
  return longest * (1.0 - 1e-12);
}

}  // namespace orrery::estimate
