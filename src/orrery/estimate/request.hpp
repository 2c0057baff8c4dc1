// What a user asks an estimate for, as typed: by flags, in a scenario file, or both. Fields that are left open are
// settled by documented rules (`settle`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::estimate {

// Choices that formats and flags know; those that are not built answer "not built yet".
enum class TaskChoice : std::uint8_t { pretrain, finetune, inference };
enum class ScheduleChoice : std::uint8_t { gpipe, one_f_one_b, interleaved, zero_bubble, dualpipe };
enum class TpOverlap : std::uint8_t { none, ring, pipe };
enum class Semantics : std::uint8_t { physical, mad_max };

struct Request {
  std::string model, cluster;
  std::int64_t devices = 0;  // 0: as many as the cluster description has
  std::string stack = "megatron-core";
  Semantics semantics = Semantics::physical;

  TaskChoice task = TaskChoice::pretrain;
  std::int64_t global_batch = 0;
  std::int64_t seq = 0;
  hardware::Precision precision = hardware::Precision::bf16;

  std::int64_t tp = 1, cp = 1, pp = 1, ep = 1, etp = 1, vpp = 1;
  std::optional<std::int64_t> dp;           // open: devices / (tp pp)
  std::optional<std::int64_t> micro_batch;  // open: the largest that fits, up to 8
  bool sequence_parallel = false;
  int zero = 1;
  std::optional<parallel::Recompute> recompute;  // open: the least that fits
  std::optional<ScheduleChoice> schedule;        // open: 1f1b, or interleaved when vpp > 1
  TpOverlap tp_overlap = TpOverlap::none;
  std::optional<bool> dp_overlap;  // open: the stack's habit

  std::string offload, placement, strategy, local_batch;
};

// Every field with its type, unit, default and doc: parses scenario files and flags, writes the help and the schema.
[[nodiscard]] const config::Record<Request>& request_record();

// A diagnostic for each field that asks for something that is not built. `flag` places name command-line flags.
[[nodiscard]] std::vector<Diagnostic> not_built(const Request& request);

[[nodiscard]] parallel::Job job_of(const Request& request);

// The plan that a request stands for, open fields settled: dp from the devices; recompute the least and then
// micro-batch the largest (up to 8, dividing a replica's batch) that fit in memory together, recompute first; when
// nothing fits, full recompute and micro-batch 1. `chosen` names the fields that were settled here.
struct SettledPlan {
  parallel::Plan plan;
  std::vector<std::string> chosen;  // "micro_batch 2 (the largest that fits)"
};
[[nodiscard]] Result<SettledPlan> settle(const Request& request, const workload::Model& model,
                                         const hardware::Cluster& cluster, const hardware::Stack& stack);

}  // namespace orrery::estimate
