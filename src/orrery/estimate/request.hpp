// What a user requests an estimate of: by flags, in a scenario file, or both. `settle` decides by documented rules what
// is not given.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::estimate {

enum class Semantics : std::uint8_t { physical, mad_max };

// The job, and those choices of a plan that are given.
struct Request : parallel::PartialPlan {
  std::string model, cluster;
  std::int64_t devices = 0;  // 0: as many as the cluster description has
  std::string stack = "megatron-core";
  Semantics semantics = Semantics::physical;

  parallel::Task task = parallel::Task::pretrain;
  std::optional<std::int64_t> global_batch;  // sequences; of training
  std::optional<std::int64_t> seq;           // not given: a vision model's own, a recommender's 1
  hardware::Precision precision = hardware::Precision::bf16;
  std::optional<std::int64_t> prompt, generate, batch;  // of inference
  std::int64_t lora = 0;
  workload::Adapter::Targets lora_targets = workload::Adapter::Targets::attention;

  std::optional<hardware::Precision> gradient_precision;  // not given: the stack's
  std::optional<hardware::Precision> reduce_precision;    // not given: the stack's
  std::optional<double> bucket;                           // not given: the stack's

  std::string strategy, local_batch, freeze;  // of mad-max
  bool memory_rule = true;                    // of mad-max
};

// Every field with its type, unit, default and doc: parses scenario files and flags, writes the help and the schema.
[[nodiscard]] const config::Record<Request>& request_record();

// What is missing or contradicts itself whatever the model: a batch without --global-batch, a prompt in training, a
// field of the other semantics.
[[nodiscard]] std::vector<Diagnostic> problems(const Request& request);

// Fields that a task needs: "global_batch", or "batch". (Training needs "seq" as well, unless the model has one of its
// own, and inference "prompt" and "generate", unless it is a recommender's.) `mad-max` is given its batch in either of
// two ways and complains itself.
[[nodiscard]] std::vector<std::string> needed_fields(parallel::Task task, Semantics semantics = Semantics::physical);

// A vision model's sequence is its patches and class token.
[[nodiscard]] parallel::Job job_of(const Request& request, const workload::Model& model);

// The stack with what the request says of gradients.
[[nodiscard]] hardware::Stack stack_of(const Request& request, hardware::Stack stack);

// The plan of a request, with what is not given decided: dp from the devices; recompute the least and then
// micro-batch the largest (up to 8, dividing a replica's batch) that fit in memory together, recompute first; when
// nothing fits, full recompute and micro-batch 1. `chosen` names the fields that were decided here.
struct SettledPlan {
  parallel::Plan plan;
  std::vector<std::string> chosen;  // "micro_batch 2 (the largest that fits)"
};
[[nodiscard]] Result<SettledPlan> settle(const Request& request, const workload::Model& model,
                                         const hardware::Cluster& cluster, const hardware::Stack& stack);

}  // namespace orrery::estimate

namespace orrery::config {

template <>
struct EnumNames<estimate::Semantics> {
  using S = estimate::Semantics;
  static constexpr std::array<std::pair<S, std::string_view>, 2> value{
      {{S::physical, "physical"}, {S::mad_max, "mad-max"}}};
};

}  // namespace orrery::config
