// Lowers the plans of a job one after the other: what they share is lowered once, and storage is kept.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include "orrery/parallel/lower_parts.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// A plan's program, and the work whose blocks are the first of the program's.
struct Lowered {
  const Program& program;
  const Work& work;
};

// Memory that a rank may fill.
struct Capacity {
  Bytes device, second_tier;

  [[nodiscard]] bool holds(const Program& program) const;
};

struct WorkHash {
  std::size_t operator()(const WorkKey& key) const;
};

// Not safe to share between threads. Model, cluster and stack must outlive it. All jobs that it is asked about may
// differ in their batch, in nothing else. Keeps the work of every slice until it is told to forget.
class Lowerer {
 public:
  Lowerer(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack);

  // Needs is_valid(model, job, plan, cluster.devices) and is_placed(cluster, plan). The program lives until the next
  // call, the work until it is forgotten.
  [[nodiscard]] Lowered lower(const Job& job, const Plan& plan);
  // Nothing where a stage needs more than `capacity`, which is found out first.
  [[nodiscard]] std::optional<Lowered> lower_within(const Job& job, const Plan& plan, const Capacity& capacity);

  // Whether some plan may fit that differs from `plan` in zero, shard and offload, up to the leanest; see least_memory.
  [[nodiscard]] bool may_fit(const Job& job, const Plan& plan, const Leanest& leanest, const Capacity& capacity);

  // What a plan's ranks compute. Kept: the next plan of the same slice gets the same.
  [[nodiscard]] const Work& work(const Job& job, const Plan& plan);

  [[nodiscard]] std::size_t kept() const { return works_.size(); }
  void forget() { works_.clear(); }  // what was handed out is gone

 private:
  void begin(const Job& job, const Plan& plan);

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  std::unordered_map<WorkKey, Work, WorkHash> works_;
  Program program_;
};

}  // namespace orrery::parallel
