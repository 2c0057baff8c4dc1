// The lower bound that a search prunes by: Estimator::step_time_bound.
//
// For every stage s of a pipeline, whatever its schedule but DualPipe,
//   step >= fill(s) + max( m (F(s) + B(s)) + drain(s), m (F(s) + B(s) + W(s)) )
// where F, B and W are what the stage computes for one micro-batch forward, backward and, where weight gradients are
// tasks of their own, for those (else B holds them); fill(s) is the first micro-batch's forward through the first chunk
// of every stage before s (nothing can reach s earlier), and drain(s) the last backward's way back through the same
// chunks (s's last backward is one of its own first chunk, or comes before it). Transfers, data-parallel communication
// and the optimizer only add to a step. Under DualPipe a rank does the work of two stages for half of the micro-batches
// each, and no pair takes less than its work without the waiting for experts. Nor does any pass of stacks that overlap
// that waiting, of which only the busiest stage's work counts here.
#include <algorithm>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/estimate/estimator.hpp"

namespace orrery::estimate {

using parallel::Plan;

Seconds Estimator::step_time_bound(const Plan& plan) {
  if (job_.is_inference()) { return Seconds(0); }
  make_room();
  const WorkPrice& parts = prices_.of(lowerer_.slice(job_, plan), plan);
  const auto shares = parallel::layers_per_virtual_stage(model_, plan);
  const auto virtual_stages = static_cast<std::int64_t>(shares.size());
  starts_.assign(1, 0);
  for (const std::int64_t share : shares) { starts_.push_back(starts_.back() + share); }
  // One micro-batch's work on virtual stage q.
  const auto work_of = [&](std::int64_t q) {
    const auto i = static_cast<std::size_t>(q);
    PartTime work = parts.layers_before[static_cast<std::size_t>(starts_[i + 1])];
    work -= parts.layers_before[static_cast<std::size_t>(starts_[i])];
    if (q == 0) { work += parts.embedding; }
    if (q == virtual_stages - 1) { work += parts.head; }
    return work;
  };
  const bool both_ways = plan.schedule == parallel::ScheduleKind::dualpipe;
  const auto m = static_cast<double>(parallel::micro_batches(job_, plan)) * (both_ways ? 0.5 : 1.0);
  Seconds longest, fill, drain;  // fill, drain: of the stages so far
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    PartTime work;
    for (std::int64_t c = 0; c < parallel::chunks_of(plan); ++c) {
      work += work_of(parallel::virtual_stage(plan, stage, c));
    }
    const Seconds passes = m * (work.forward + work.backward);
    const Seconds all = passes + m * work.weight;
    if (both_ways || stack_.overlap.dispatch) {
      longest = max(longest, all - m * work.expert_waits);
      continue;
    }
    longest = max(longest, max(fill + all, fill + passes + drain));
    const PartTime first = work_of(parallel::virtual_stage(plan, stage, 0));
    fill += first.forward;
    drain += first.backward;
  }
  // Sums of doubles may differ in their last bits. The solver's rounding to ticks only adds.
  return longest * (1.0 - 1e-12);
}

}  // namespace orrery::estimate
