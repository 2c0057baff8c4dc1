// The lower bound that a search prunes by: Estimator::step_time_bound.
//
// For every stage s of a pipeline, whatever its schedule but DualPipe,
//   step >= fill(s) + max( m (F(s) + B(s)) + drain(s), m (F(s) + B(s) + W(s)) )
// where F, B and W are what the stage computes for one micro-batch forward, backward and, where weight gradients are
// tasks of their own, for those (else B holds them); fill(s) is the first micro-batch's forward through the first chunk
// of every stage before s (nothing can reach s earlier), and drain(s) the last backward's way back through the same
// chunks (s's last backward is one of its own first chunk, or comes before it). Transfers, data-parallel communication
// and the optimizer only add to a step. Under DualPipe a rank does the work of two stages for half of the micro-batches
// each, and no pair takes less than its work without the waiting for experts.
#include <algorithm>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/mesh.hpp"

namespace orrery::estimate {

using parallel::Gradients;
using parallel::Plan;

std::size_t Estimator::SliceHash::operator()(const SliceKey& key) const {
  const auto& slice = key.slice;
  std::size_t hash = 0;
  const auto mix = [&hash](auto value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32U;
  };
  mix(slice.tp | slice.micro_batch << 20U | slice.cp << 40U);
  mix(slice.ep | slice.etp << 20U | static_cast<std::int64_t>(slice.cp_method) << 40U);
  mix(static_cast<int>(key.recompute) | static_cast<int>(key.tp_overlap) << 4 | (slice.sequence_parallel ? 1 : 0) << 8 |
      (key.splits ? 1 : 0) << 9);
  return hash;
}

namespace {

// Prices what a bound is made of: parts of the model on one rank, forward and backward.
class PartPricer {
 public:
  PartPricer(const Plan& plan, bool splits, const hardware::Cluster& cluster, const hardware::Stack& stack,
             const network::Fabric& fabric)
      : plan_(plan), splits_(splits), stack_(stack), fabric_(fabric), mesh_(parallel::make_mesh(cluster, plan)) {}

  [[nodiscard]] PartTime operator()(const std::vector<workload::Operator>& operators,
                                    parallel::Recompute recompute) const {
    const auto backward = [&](Gradients gradients) {
      return price_block(parallel::backward_block("", operators, plan_, stack_, recompute, gradients), fabric_, mesh_);
    };
    PartTime part;
    const Cost forward = price_block(parallel::forward_block("", operators, plan_), fabric_, mesh_);
    const Cost inputs = backward(splits_ ? Gradients::input : Gradients::all);
    part.forward = forward.time;
    part.backward = inputs.time;
    part.expert_waits = forward.of(TrafficKind::ep).exposed + inputs.of(TrafficKind::ep).exposed;
    if (splits_) {
      const Cost weights = backward(Gradients::weight);
      part.weight = weights.time;
      part.expert_waits += weights.of(TrafficKind::ep).exposed;
    }
    return part;
  }

 private:
  const Plan& plan_;
  bool splits_;
  const hardware::Stack& stack_;
  const network::Fabric& fabric_;
  parallel::Mesh mesh_;
};

}  // namespace

const Estimator::PartTimes& Estimator::part_times(const Plan& plan) {
  const bool splits = parallel::splits_backward(plan.schedule);
  const workload::Slice slice = parallel::slice_of(job_, plan);
  const auto [entry, is_new] = part_times_.try_emplace(SliceKey{slice, plan.recompute, plan.tp_overlap, splits});
  if (!is_new) { return entry->second; }
  PartTimes& times = entry->second;
  // Groups of a slice lie alike whatever is replicated outside them; the mesh of one replica will do, but for experts,
  // which may be spread over replicas.
  const PartPricer price(plan, splits, cluster_, stack_, fabric_);
  constexpr auto kNothingAgain = parallel::Recompute::none;
  times.embedding = price(workload::embedding_operators(model_, stack_, slice), kNothingAgain);
  times.head = price(workload::head_operators(model_, stack_, slice), kNothingAgain);
  if (model_.mtp_layers > 0) {
    times.head +=
        static_cast<double>(model_.mtp_layers) * price(workload::mtp_operators(model_, stack_, slice), kNothingAgain);
  }
  std::vector<std::pair<workload::LayerKind, PartTime>> kinds;
  times.layers_before.push_back({});
  for (std::int64_t layer = 0; layer < model_.depth(); ++layer) {
    const auto kind = workload::layer_kind(model_, layer);
    auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& pair) { return pair.first == kind; });
    if (known == kinds.end()) {
      kinds.emplace_back(kind, price(workload::layer_operators(model_, stack_, slice, kind), plan.recompute));
      known = kinds.end() - 1;
    }
    PartTime sum = times.layers_before.back();
    sum += known->second;
    times.layers_before.push_back(sum);
  }
  return times;
}

Seconds Estimator::step_time_bound(const Plan& plan) {
  if (job_.is_inference()) { return Seconds(0); }
  const PartTimes& parts = part_times(plan);
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
    if (both_ways) {
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
