// The built-in spaces (data/spaces) as plain loops, for tests: all valid combinations of these axes:
//
//   tp           divisors of heads and devices
//   cp           1; divisors of devices / tp that leave every rank at least 4,096 tokens of a sequence
//   pp           divisors of devices / (tp cp), up to the number of layers
//   ep           with experts: divisors of the number of experts and of tp cp dp; else 1
//   etp          with experts: 1, tp; else 1
//   vpp          1 or more chunks of at least one layer, when pp > 1 and micro-batches group by pp
//   micro_batch  divisors of a replica's batch
//   cp_method    ring, ulysses (cp > 1; ulysses where the heads divide)
//   sequence_parallel  off, on (tp > 1); with experts on wherever tp > 1
//   recompute    none, selective, full
//   zero         0 .. 3 (where weights have more than one replica)
//
// dp is determined by the devices. The schedule is 1f1b if vpp is 1, else interleaved; a fixed schedule restricts vpp.
// Inference has a forward pass only: no axes cp, vpp, recompute and zero.
//
// Not axes but taken from the fixed values: tp overlap, hybrid sharding, offload, layers of the end stages. Not
// included unless fixed: gpipe, which keeps the activations of all micro-batches (where they fit, its step is as long
// as 1f1b's without transfers: 1-2 % less if a transfer takes 1 % of a stage, docs/models/pipeline.md); zero_bubble and
// dualpipe, which most software stacks do not have.
//
// In axis order: tp slowest, then cp, pp, ep, etp, vpp, micro_batch, cp_method, sequence_parallel, recompute, zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::explore {

using parallel::Plan;
using parallel::Recompute;
using parallel::ScheduleKind;
using workload::ContextMethod;

namespace loops {

// Published runs keep at least 4,096 tokens per rank: MLPerf Training v5.0 submissions of Llama 3.1 405B have cp 2 at
// 8,192 tokens (NVIDIA's config_GB200_384x4x48xtp4pp8cp2), Llama 3 itself cp 16 at 131,072 (arXiv:2407.21783, table 4).
// With fewer, the space would be many times larger.
constexpr std::int64_t kFewestTokensOfRank = 4096;

inline std::vector<std::int64_t> divisors(std::int64_t whole, std::int64_t most) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) { continue; }
    small.push_back(d);
    if (d != whole / d) { large.push_back(whole / d); }
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  std::erase_if(small, [&](std::int64_t d) { return d > most; });
  return small;
}

template <class T>
std::vector<T> axis(const std::optional<T>& fixed, std::vector<T> values) {
  return fixed ? std::vector<T>{*fixed} : std::move(values);
}

// Independent axes come first; each function below is one or two levels of nested loops. Fixed degrees may be any
// number, so they are checked before anything is divided by them.
class Enumeration {
 public:
  Enumeration(const workload::Model& model, const parallel::Job& job, const hardware::Cluster& cluster,
              const parallel::PartialPlan& fixed, bool dp_overlap)
      : model_(model), job_(job), cluster_(cluster), fixed_(fixed) {
    plan_.dp_overlap = fixed.dp_overlap.value_or(dp_overlap);
    plan_.tp_overlap = fixed.tp_overlap.value_or(plan_.tp_overlap);
    plan_.shard = fixed.shard.value_or(0);
    plan_.offload = fixed.offload.value_or(plan_.offload);
    plan_.first_stage_layers = fixed.first_stage_layers.value_or(0);
    plan_.last_stage_layers = fixed.last_stage_layers.value_or(0);
    plan_.embedding_as_layer = fixed.embedding_as_layer.value_or(false);
    plan_.head_as_layer = fixed.head_as_layer.value_or(false);
  }

  std::vector<Plan> run() {
    if (!parallel::is_valid(cluster_, plan_)) { return {}; }
    for (const std::int64_t tp : axis(fixed_.tp, divisors(cluster_.devices, cluster_.devices))) {
      if (tp < 1 || model_.heads % tp != 0 || cluster_.devices % tp != 0) { continue; }
      plan_.tp = tp;
      over_contexts();
    }
    return std::move(plans_);
  }

 private:
  void over_contexts() {
    const std::int64_t rest = cluster_.devices / plan_.tp;
    const std::int64_t most = job_.is_inference() ? 1 : std::max<std::int64_t>(1, job_.seq / kFewestTokensOfRank);
    const auto degrees = divisors(rest, most);
    for (const std::int64_t cp : axis(fixed_.cp, degrees)) {
      if (cp < 1 || rest % cp != 0) { continue; }
      plan_.cp = cp;
      over_stages(rest / cp);
    }
  }

  void over_stages(std::int64_t rest) {
    const std::int64_t layers = model_.depth() + (plan_.embedding_as_layer ? 1 : 0) + (plan_.head_as_layer ? 1 : 0);
    for (const std::int64_t pp : axis(fixed_.pp, divisors(rest, layers))) {
      if (pp < 1 || rest % pp != 0) { continue; }
      plan_.pp = pp;
      plan_.dp = rest / pp;
      const bool wanted = !fixed_.dp || *fixed_.dp == plan_.dp;
      if (!wanted || job_.global_batch % plan_.dp != 0) { continue; }
      over_experts();
    }
  }

  void over_experts() {
    const std::int64_t most = model_.has_experts() ? std::gcd(model_.experts.count, plan_.stage_ranks()) : 1;
    const bool narrow = plan_.tp == 1 || !model_.has_experts();
    for (const std::int64_t ep : axis(fixed_.ep, divisors(most, most))) {
      for (const std::int64_t etp :
           axis(fixed_.etp, narrow ? std::vector<std::int64_t>{1} : std::vector{1, plan_.tp})) {
        if (ep < 1 || etp < 1 || plan_.stage_ranks() % ep != 0 || plan_.stage_ranks() / ep % etp != 0) { continue; }
        plan_.ep = ep;
        plan_.etp = etp;
        over_chunks();
      }
    }
  }

  // Chunks per stage and the schedule.
  void over_chunks() {
    const bool one_chunk = job_.is_inference() || plan_.pp == 1 ||
                           fixed_.schedule.value_or(ScheduleKind::interleaved) != ScheduleKind::interleaved;
    const std::int64_t layers = model_.depth() + (plan_.embedding_as_layer ? 1 : 0) + (plan_.head_as_layer ? 1 : 0);
    const std::int64_t most = one_chunk ? 1 : layers / plan_.pp;
    std::vector<std::int64_t> chunks(static_cast<std::size_t>(std::max<std::int64_t>(1, most)));
    std::iota(chunks.begin(), chunks.end(), 1);
    for (const std::int64_t vpp : axis(fixed_.vpp, chunks)) {
      plan_.vpp = vpp;
      plan_.schedule = fixed_.schedule.value_or(vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b);
      over_micro_batches();
    }
  }

  void over_micro_batches() {
    const std::int64_t replica = job_.global_batch / plan_.dp;
    auto methods = std::vector{ContextMethod::ring};  // no effect with cp 1
    if (plan_.cp > 1) { methods = axis(fixed_.cp_method, {ContextMethod::ring, ContextMethod::ulysses}); }
    for (const std::int64_t size : axis(fixed_.micro_batch, divisors(replica, replica))) {
      plan_.micro_batch = size;
      for (const auto method : methods) {
        plan_.cp_method = method;
        over_choices();
      }
    }
  }

  void over_choices() {
    auto split = std::vector{false};
    if (plan_.tp > 1) { split = model_.has_experts() ? std::vector{true} : std::vector{false, true}; }
    auto recomputes = std::vector{Recompute::none};
    if (!job_.is_inference()) { recomputes = {Recompute::none, Recompute::selective, Recompute::full}; }
    const bool replicated =
        !job_.is_inference() && (plan_.replicas() > 1 || (model_.has_experts() && plan_.expert_replicas() > 1));
    const auto stages = replicated ? std::vector{0, 1, 2, 3} : std::vector{0};
    for (const bool on : axis(fixed_.sequence_parallel, split)) {
      plan_.sequence_parallel = on;
      for (const auto recompute : axis(fixed_.recompute, recomputes)) {
        plan_.recompute = recompute;
        for (const int zero : axis(fixed_.zero, stages)) {
          plan_.zero = zero;
          if (parallel::is_valid(model_, job_, plan_, cluster_.devices)) { plans_.push_back(plan_); }
        }
      }
    }
  }

  const workload::Model& model_;
  const parallel::Job& job_;
  const hardware::Cluster& cluster_;
  const parallel::PartialPlan& fixed_;
  Plan plan_;
  std::vector<Plan> plans_;
};

}  // namespace loops

inline std::vector<Plan> enumerate(const workload::Model& model, const parallel::Job& job,
                                   const hardware::Cluster& cluster, const parallel::PartialPlan& fixed,
                                   bool dp_overlap) {
  return loops::Enumeration(model, job, cluster, fixed, dp_overlap).run();
}

}  // namespace orrery::explore
