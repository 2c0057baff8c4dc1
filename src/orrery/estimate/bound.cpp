// The lower bound that a search prunes by: Estimator::step_time_bound.
//
// For every stage s of a pipeline, whatever its schedule,
//   step >= fill(s) + m * work(s) + drain(s)
// where work(s) is what the stage computes for one micro-batch, fill(s) the first micro-batch's forward through the
// first chunk of every stage before s (nothing can reach s earlier), and drain(s) the last backward's way back through
// the same chunks (s's last task is a backward of its own first chunk, or comes before it). Transfers, data-parallel
// communication and the optimizer only add to a step.
#include <algorithm>

#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/mesh.hpp"

namespace orrery::estimate {

using parallel::Plan;

namespace {

std::uint64_t slice_key(const Plan& plan) {
  const auto tp = static_cast<std::uint64_t>(plan.tp);
  const auto size = static_cast<std::uint64_t>(plan.micro_batch);
  const auto recompute = static_cast<std::uint64_t>(plan.recompute);
  return (tp << 36U) ^ (size << 4U) ^ (recompute << 1U) ^ (plan.sequence_parallel ? 1U : 0U);
}

}  // namespace

const Estimator::PartTimes& Estimator::part_times(const Plan& plan) {
  const auto [entry, is_new] = part_times_.try_emplace(slice_key(plan));
  if (!is_new) { return entry->second; }
  parallel::Mesh mesh;
  mesh.group(parallel::GroupKind::tp) = parallel::strided_group(cluster_, 1, plan.tp);
  const workload::Slice slice = parallel::slice_of(job_, plan);
  const auto forward = [&](const std::vector<workload::Operator>& operators) {
    return price_block(parallel::forward_block("", operators, plan), fabric_, mesh).time;
  };
  const auto backward = [&](const std::vector<workload::Operator>& operators, parallel::Recompute recompute) {
    return price_block(parallel::backward_block("", operators, plan, stack_, recompute), fabric_, mesh).time;
  };
  const auto layer = workload::layer_operators(model_, stack_, slice, workload::layer_kind(model_, 0));
  const auto embedding = workload::embedding_operators(model_, stack_, slice);
  const auto head = workload::head_operators(model_, stack_, slice);
  constexpr auto kNothingAgain = parallel::Recompute::none;
  entry->second = {forward(layer),     backward(layer, plan.recompute),
                   forward(embedding), backward(embedding, kNothingAgain),
                   forward(head),      backward(head, kNothingAgain)};
  return entry->second;
}

Seconds Estimator::step_time_bound(const Plan& plan) {
  const PartTimes& parts = part_times(plan);
  const auto shares = parallel::layers_per_virtual_stage(model_, plan);
  const auto m = static_cast<double>(parallel::micro_batches(job_, plan));
  const Seconds layer = parts.layer_forward + parts.layer_backward;
  const Seconds embedding = parts.embedding_forward + parts.embedding_backward;
  Seconds longest, before;  // fill plus drain of the stages so far
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    std::int64_t layers = 0;
    for (std::int64_t c = 0; c < plan.vpp; ++c) { layers += shares[static_cast<std::size_t>(c * plan.pp + stage)]; }
    Seconds work = static_cast<double>(layers) * layer;
    if (stage == 0) { work += embedding; }
    if (stage == plan.pp - 1) { work += parts.head_forward + parts.head_backward; }
    longest = max(longest, before + m * work);
    before += static_cast<double>(shares[static_cast<std::size_t>(stage)]) * layer;
    if (stage == 0) { before += embedding; }
  }
  // Sums of doubles may differ in their last bits. The solver's rounding to ticks only adds.
  return longest * (1.0 - 1e-12);
}

}  // namespace orrery::estimate
