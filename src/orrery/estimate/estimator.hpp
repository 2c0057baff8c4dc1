// Prices plans in closed form: plan -> program -> blocks -> segments -> pipeline -> step.
//
// Assumes that every rank of a class runs alike, that compute is not slowed by communication beside it, and that groups
// do not contend for links. What is left out is listed in every result (`not_modelled`).
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "orrery/estimate/priced.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::estimate {

struct Detail {
  bool terms = false;    // every operator and collective
  bool classes = false;  // the rank classes
};

// Memory of a plan's fullest rank against what there is, in both tiers.
struct MemoryOutcome {
  Bytes need;
  bool fits = true;
};

// Work of one micro-batch in a part of the model, without data-parallel communication.
struct PartTime {
  Seconds forward, backward, weight;
  Seconds expert_waits;  // of these, waiting for traffic between experts

  PartTime& operator+=(const PartTime& other) {
    forward += other.forward;
    backward += other.backward;
    weight += other.weight;
    expert_waits += other.expert_waits;
    return *this;
  }
  PartTime& operator-=(const PartTime& other) { return *this += -1.0 * other; }
  friend PartTime operator*(double count, const PartTime& part) {
    return {count * part.forward, count * part.backward, count * part.weight, count * part.expert_waits};
  }
};

// Prices plans of one job on one cluster. Not safe to share between threads: it keeps scratch storage. Holds
// references: model, cluster and stack must outlive it.
class Estimator {
 public:
  Estimator(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack,
            const parallel::Job& job);

  // All need is_valid(model, job, plan, cluster.devices).
  [[nodiscard]] MemoryOutcome memory(const parallel::Plan& plan) const;
  [[nodiscard]] Seconds step_time(const parallel::Plan& plan);
  // The step time if the plan fits in memory.
  [[nodiscard]] std::optional<Seconds> feasible_step_time(const parallel::Plan& plan);
  // A time that step_time(plan) never goes below; see docs/models/search.md.
  [[nodiscard]] Seconds step_time_bound(const parallel::Plan& plan);
  [[nodiscard]] results::Estimate estimate(const parallel::Plan& plan, Detail detail = {});

  // Of inference, a step is a batch of requests from prompt to last token.

  [[nodiscard]] Bytes capacity() const;
  [[nodiscard]] bool fits(const parallel::Program& program) const;

 private:
  // What a rank's slice depends on, and the times of its parts.
  struct SliceKey {
    workload::Slice slice;
    parallel::Recompute recompute;
    parallel::TpOverlap tp_overlap;
    bool splits;
    friend bool operator==(const SliceKey&, const SliceKey&) = default;
  };
  struct SliceHash {
    std::size_t operator()(const SliceKey& key) const;
  };
  struct PartTimes {
    PartTime embedding, head;
    std::vector<PartTime> layers_before;  // [layer]: sum over the layers before it; one more than there are layers
  };
  [[nodiscard]] const PartTimes& part_times(const parallel::Plan& plan);
  [[nodiscard]] Seconds time_of(const parallel::Program& program);
  [[nodiscard]] results::Memory memory_of(const parallel::Program& program) const;

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  parallel::Job job_;
  network::Fabric fabric_;
  parallel::PipelineSolver solver_;
  std::unordered_map<SliceKey, PartTimes, SliceHash> part_times_;
  std::vector<std::int64_t> starts_;  // scratch
};

}  // namespace orrery::estimate
