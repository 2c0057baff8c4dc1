// Lowers the plans of a job one after the other: what they share is lowered once, and storage is kept.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include "orrery/parallel/lower_parts.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// A plan's program, and the slice whose blocks are the first of the program's.
struct Lowered {
  const Program& program;
  const LoweredSlice& slice;
};

// Memory that a rank may fill.
struct Capacity {
  Bytes device, second_tier;

  [[nodiscard]] bool holds(const Program& program) const;
};

struct SliceHash {
  std::size_t operator()(const SliceKey& key) const;
};

// Not safe to share between threads. Model, cluster and stack must outlive it. Jobs of several calls may differ in
// their batch only. Keeps every lowered slice until forget().
class Lowerer {
 public:
  Lowerer(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack);

  // Needs is_valid(model, job, plan, cluster.devices) and is_placed(cluster, plan). The program lives until the next
  // call, the slice until forget().
  [[nodiscard]] Lowered lower(const Job& job, const Plan& plan);
  // Nothing where a stage needs more than `capacity`; memory is computed before anything else.
  [[nodiscard]] std::optional<Lowered> lower_within(const Job& job, const Plan& plan, const Capacity& capacity);

  // Whether some plan may fit that differs from `plan` in zero, shard and offload, up to the lowest_memory; see
  // least_memory.
  [[nodiscard]] bool may_fit(const Job& job, const Plan& plan, const LowestMemory& lowest_memory,
                             const Capacity& capacity);

  // What a plan's ranks compute. The next plan of the same slice gets the same object.
  [[nodiscard]] const LoweredSlice& slice(const Job& job, const Plan& plan);

  [[nodiscard]] std::size_t kept() const { return slices_.size(); }
  void forget() { slices_.clear(); }  // invalidates the slices that were returned

 private:
  void begin(const Job& job, const Plan& plan);

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  std::unordered_map<SliceKey, LoweredSlice, SliceHash> slices_;
  Program program_;
};

}  // namespace orrery::parallel
