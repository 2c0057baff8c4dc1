// Prices plans in closed form: plan -> program -> blocks -> segments -> pipeline -> step.
//
// Assumptions: all ranks of a class are identical; compute is slowed only by concurrent gathers and reductions of other
// layers (the stack's `interference`); only these share ports with other calls. Every result lists what is not modelled
// (`not_modelled`).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/estimate/step.hpp"
#include "orrery/estimate/unlike_nodes.hpp"
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
  Bytes memory;  // of the rank with the most memory in use
};

// Memory of a plan's fullest rank, compared with the capacity of both tiers.
struct MemoryOutcome {
  Bytes need, capacity;
  bool fits = true;
};

// Prices plans of one job on one cluster. Not thread-safe: it has scratch buffers. Keeps references: model, cluster and
// stack must outlive it.
class Estimator {
 public:
  Estimator(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack,
            const parallel::Job& job);

  [[nodiscard]] const parallel::Job& job() const { return job_; }
  // Sets the number of sequences per step for the calls below.
  void set_global_batch(std::int64_t sequences) { job_.global_batch = sequences; }

  // All functions below require is_valid(model, job, plan, cluster.devices) and is_valid(cluster, plan).
  [[nodiscard]] MemoryOutcome memory(const parallel::Plan& plan);
  [[nodiscard]] Seconds step_time(const parallel::Plan& plan, Ports ports = Ports::shared);
  // Step time and memory; nothing if the plan does not fit.
  [[nodiscard]] std::optional<PlanPrice> price(const parallel::Plan& plan);
  // False only if no plan that differs from `plan` in zero, shard and offload alone fits. `lowest_memory` names the
  // lowest of these choices.
  [[nodiscard]] bool may_fit(const parallel::Plan& plan, const parallel::LowestMemory& lowest_memory);
  // A lower bound of step_time(plan); see docs/models/search.md.
  [[nodiscard]] Seconds step_time_bound(const parallel::Plan& plan);
  [[nodiscard]] results::Estimate estimate(const parallel::Plan& plan, Detail detail = {});
  // What the ranks do; valid until the next call.
  [[nodiscard]] const parallel::Program& program(const parallel::Plan& plan);

  // In inference a step is a batch of requests from prompt to last token.

  [[nodiscard]] Bytes capacity() const;
  [[nodiscard]] parallel::Capacity capacities() const;

 private:
  // Limit on the number of cached slices, about 20 kB each.
  static constexpr std::size_t kMostKept = 8192;
  void trim_caches();
  [[nodiscard]] Seconds time_of(const parallel::Lowered& lowered, Ports ports = Ports::shared);
  [[nodiscard]] results::Memory memory_of(const parallel::Program& program) const;
  [[nodiscard]] bool fits(const parallel::Program& program) const;
  // Of the fullest stage, and its number.
  struct Fullest {
    std::size_t stage = 0;
    Bytes capacity;
  };
  [[nodiscard]] Fullest fullest(const parallel::Program& program) const;
  void describe_nodes(const parallel::Program& program, results::Estimate& result) const;
  [[nodiscard]] results::Estimate estimate_unlike(const parallel::Program& program, Detail detail);
  [[nodiscard]] results::Estimate estimate_unlike_batch(const parallel::Program& program, Detail detail);

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  parallel::Job job_;
  network::Fabric fabric_;
  network::PriceCache collectives_;
  parallel::Lowerer lowerer_;
  WorkPrices prices_;
  StepSolver solver_;
  std::optional<UnlikeNodes> unlike_;  // of a cluster with nodes of several kinds
  // What the layers of virtual stages depend on.
  struct Division {
    bool bidirectional = false;
    std::int64_t pp = 0, vpp = 0, first_stage_layers = 0, last_stage_layers = 0;
    bool embedding_as_layer = false, head_as_layer = false;

    friend bool operator==(const Division&, const Division&) = default;
  };
  void divide_layers(const parallel::Plan& plan);  // sets the two below; plans of a search in a row share them

  Division division_;
  std::vector<std::int64_t> starts_;  // [virtual stage]: its first layer; and the number of layers
};

}  // namespace orrery::estimate
