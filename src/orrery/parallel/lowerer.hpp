// Lowers the plans of a job one after another; shared slices are lowered once, and buffers are reused.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "orrery/parallel/lower_parts.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// A plan's program, and the slice whose blocks are the first of the program's.
struct Lowered {
  const Program& program;
  const LoweredSlice& slice;
};

// Memory capacity of a rank.
struct Capacity {
  Bytes device, second_tier;

  [[nodiscard]] bool holds(const Program& program) const;
};

struct SliceHash {
  std::size_t operator()(const SliceKey& key) const;
};

// Not thread-safe. Model, cluster and stack must outlive it. Jobs of several calls may differ in their batch only.
// Keeps every lowered slice until forget().
class Lowerer {
 public:
  Lowerer(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack);

  // Requires is_valid(model, job, plan, cluster.devices) and is_placed(cluster, plan). The program is valid until the
  // next call, the slice until forget().
  [[nodiscard]] Lowered lower(const Job& job, const Plan& plan);
  // Of the plan that was lowered last: bytes of activations that one micro-batch keeps on a stage from its forward to
  // its backward, by chunk. What recompute drops is not among them.
  [[nodiscard]] const std::vector<double>& kept_activations(std::int64_t stage) const;
  // Nothing if a stage needs more than `capacity`; memory is computed first.
  [[nodiscard]] std::optional<Lowered> lower_within(const Job& job, const Plan& plan, const Capacity& capacity);

  // False only if no plan that differs from `plan` in zero, shard and offload, up to lowest_memory, fits; see
  // least_memory.
  [[nodiscard]] bool may_fit(const Job& job, const Plan& plan, const LowestMemory& lowest_memory,
                             const Capacity& capacity);

  // The slice of a plan. Plans with the same slice get the same object.
  [[nodiscard]] const LoweredSlice& slice(const Job& job, const Plan& plan);

  [[nodiscard]] std::size_t kept() const { return slices_.size(); }
  void forget() {  // invalidates the slices that were returned
    slices_.clear();
    partition_.key = {};
  }

 private:
  void begin(const Job& job, const Plan& plan);

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  std::unordered_map<SliceKey, LoweredSlice, SliceHash> slices_;
  StagePartition partition_;  // of the last plan
  Program program_;
};

}  // namespace orrery::parallel
