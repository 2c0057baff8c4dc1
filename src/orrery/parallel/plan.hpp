// How a job is spread over devices, and what the job is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::parallel {

enum class Recompute : std::uint8_t { none, selective, full };
enum class ScheduleKind : std::uint8_t { gpipe, one_f_one_b, interleaved };
enum class Task : std::uint8_t { pretrain };

// One training step's work.
struct Job {
  std::int64_t global_batch = 0;  // sequences per step
  std::int64_t seq = 0;           // tokens per sequence
  hardware::Precision precision = hardware::Precision::bf16;
  Task task = Task::pretrain;

  friend bool operator==(const Job&, const Job&) = default;
};

// Degrees multiply to the number of devices: devices = tp x pp x dp. Ranks are laid out tp innermost, then dp, then pp.
struct Plan {
  std::int64_t tp = 1;           // tensor-parallel degree
  std::int64_t pp = 1;           // pipeline stages
  std::int64_t dp = 1;           // data-parallel replicas
  std::int64_t vpp = 1;          // model chunks per stage (interleaving)
  std::int64_t micro_batch = 1;  // sequences per micro-batch per replica
  bool sequence_parallel = false;
  int zero = 0;  // 0 replicated, 1 optimizer, 2 + gradients, 3 + weights sharded over dp
  Recompute recompute = Recompute::none;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  bool dp_overlap = true;  // gradient reduction under the last backward, weight gather under the first forward

  [[nodiscard]] std::int64_t devices() const { return tp * pp * dp; }
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Micro-batches per replica and step.
[[nodiscard]] inline std::int64_t micro_batches(const Job& job, const Plan& plan) {
  return job.global_batch / plan.dp / plan.micro_batch;
}

// What is wrong with a job whatever the plan.
[[nodiscard]] std::vector<Diagnostic> problems(const workload::Model& model, const Job& job);

// Everything that makes a plan impossible for a job on so many devices, each with the nearest value that would do.
// Nothing is said about memory: see memory.hpp.
[[nodiscard]] std::vector<Diagnostic> problems(const workload::Model& model, const Job& job, const Plan& plan,
                                               std::int64_t devices);

// Quick form of problems(): true when there are none. Allocates nothing.
[[nodiscard]] bool is_valid(const workload::Model& model, const Job& job, const Plan& plan, std::int64_t devices);

}  // namespace orrery::parallel
