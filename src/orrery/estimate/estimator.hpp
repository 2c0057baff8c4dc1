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
  bool terms = false;  // every operator and collective, and the rank classes
};

// Memory of a plan's fullest rank against what there is.
struct MemoryOutcome {
  Bytes need;
  bool fits = true;
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

  [[nodiscard]] Bytes capacity() const;

 private:
  // Work of one micro-batch in one layer, the embedding and the head, without data-parallel communication.
  struct PartTimes {
    Seconds layer_forward, layer_backward, embedding_forward, embedding_backward, head_forward, head_backward;
  };
  [[nodiscard]] const PartTimes& part_times(const parallel::Plan& plan);

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  parallel::Job job_;
  network::Fabric fabric_;
  parallel::PipelineSolver solver_;
  std::unordered_map<std::uint64_t, PartTimes> part_times_;  // by what a rank's slice depends on
};

}  // namespace orrery::estimate
