// Prices plans in closed form: plan -> program -> blocks -> segments -> pipeline -> step.
//
// Assumes that every rank of a class runs alike, that compute is slowed by gathers and reductions of layers beside it
// only (the stack's `interference`), and that groups do not contend for links. What is left out is listed in every
// result (`not_modelled`).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/estimate/step.hpp"
#include "orrery/estimate/work_prices.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/lowerer.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::estimate {

struct Detail {
  bool terms = false;    // every operator and collective
  bool classes = false;  // the rank classes
};

struct PlanPrice {
  Seconds step_time;
  Bytes memory;  // of the fullest rank
};

// Memory of a plan's fullest rank against what there is, in both tiers.
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

  // What follows is about steps of so many sequences.
  void set_global_batch(std::int64_t sequences) { job_.global_batch = sequences; }

  // All need is_valid(model, job, plan, cluster.devices) and is_valid(cluster, plan).
  [[nodiscard]] MemoryOutcome memory(const parallel::Plan& plan);
  [[nodiscard]] Seconds step_time(const parallel::Plan& plan);
  // Step time and memory if the plan fits.
  [[nodiscard]] std::optional<PlanPrice> price(const parallel::Plan& plan);
  // Whether some plan may fit that differs from `plan` in zero, shard and offload, up to the lowest_memory.
  [[nodiscard]] bool may_fit(const parallel::Plan& plan, const parallel::LowestMemory& lowest_memory);
  // A time that step_time(plan) never goes below; see docs/models/search.md.
  [[nodiscard]] Seconds step_time_bound(const parallel::Plan& plan);
  [[nodiscard]] results::Estimate estimate(const parallel::Plan& plan, Detail detail = {});

  // Of inference, a step is a batch of requests from prompt to last token.

  [[nodiscard]] Bytes capacity() const;
  [[nodiscard]] parallel::Capacity room() const;

 private:
  // Shared parts are kept for so many slices at most, whatever is asked: some 20 kilobytes each.
  static constexpr std::size_t kMostKept = 8192;
  void make_room();
  [[nodiscard]] Seconds time_of(const parallel::Lowered& lowered);
  [[nodiscard]] results::Memory memory_of(const parallel::Program& program) const;

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  parallel::Job job_;
  network::Fabric fabric_;
  parallel::Lowerer lowerer_;
  WorkPrices prices_;
  StepSolver solver_;
  std::vector<std::int64_t> starts_;  // scratch
};

}  // namespace orrery::estimate
