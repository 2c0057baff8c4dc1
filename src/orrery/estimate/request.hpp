// A request for an estimate: by flags, in a scenario file, or both. `resolve` chooses what the request does not give.
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
#include "orrery/hardware/storage_format.hpp"
#include "orrery/hardware/tier_use.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::estimate {

enum class Semantics : std::uint8_t { physical, mad_max };

// The job, and the choices of a plan that are given.
struct Request : parallel::PartialPlan {
  std::string model, cluster;
  std::string as;                       // model_type to read a config.json as; empty: its own
  std::optional<std::int64_t> devices;  // not given: all of the cluster
  std::string stack;                    // not given: by task, model and accelerator (stack_choice.hpp)
  Semantics semantics = Semantics::physical;

  parallel::Task task = parallel::Task::pretrain;
  std::optional<std::int64_t> global_batch;  // sequences; training only
  std::optional<std::int64_t> seq;           // not given: defined by a vision model, 1 for a recommender
  std::int64_t images = 0;                   // in each sequence, of a model with a vision tower; 0: text only
  std::optional<std::int64_t> image_size;    // side in pixels; not given: defined by the tower
  hardware::Precision precision = hardware::Precision::bf16;
  std::optional<hardware::StorageFormat> weight_format;    // not given: weight_elements()
  std::optional<hardware::CacheFormat> kv_format;          // inference only; not given: the stack's default
  std::optional<hardware::Precision> attention_precision;  // not given: that of GEMM inputs, at least 16 bits
  std::optional<workload::Quantized> quantized;            // inference only; not given: quantized_layers()
  std::optional<std::int64_t> prompt, generate, batch;     // inference only
  std::int64_t lora = 0;
  workload::Adapter::Targets lora_targets = workload::Adapter::Targets::attention;

  std::optional<hardware::Fp8Recipe> fp8_recipe;          // with fp8 only; not given: the stack's default
  std::optional<hardware::OptimizerKind> optimizer;       // training only; not given: adam
  std::optional<hardware::Precision> gradient_precision;  // not given: the stack's default
  std::optional<hardware::Precision> reduce_precision;    // not given: the stack's default
  std::optional<hardware::ReduceEvery> reduce_every;      // not given: the stack's default
  std::optional<double> bucket;                           // not given: the stack's default

  std::optional<hardware::ExpansionRule> expansion;  // not given: the second tier is not used in place
  std::string expansion_classes;                     // that may be in it; empty: all

  std::string strategy, local_batch, freeze;  // mad-max only
  std::optional<bool> memory_rule;            // mad-max only; not given: on
};

// One record per field: name, type, unit, default, doc. It parses scenario files and flags and generates help and
// schema.
[[nodiscard]] const config::Record<Request>& request_record();

// The classes of `expansion_classes`; unknown ones are left out.
[[nodiscard]] std::vector<hardware::TensorClass> expansion_classes(const Request& request);

// Errors that do not depend on the model: --batch in training, --prompt in training, fields of the other semantics.
[[nodiscard]] std::vector<Diagnostic> problems(const Request& request);

// Required fields of a task: "global_batch", or "batch". Training also requires "seq" unless the model defines it;
// inference requires "prompt" and "generate" unless the model is a recommender. mad-max accepts its batch in two forms
// and reports what is missing itself.
[[nodiscard]] std::vector<std::string> needed_fields(parallel::Task task, Semantics semantics = Semantics::physical);

// Sequence length of a vision model: its patches and class token.
[[nodiscard]] parallel::Job job_of(const Request& request, const workload::Model& model, const hardware::Stack& stack);

// The stack with the request's optimizer and gradient settings.
[[nodiscard]] hardware::Stack stack_of(const Request& request, hardware::Stack stack);

// The choices that are given; the others have defaults (docs/guide/plans.md), micro-batch and vpp 1, and no recompute.
// dp is what the other degrees leave of the devices.
[[nodiscard]] parallel::Plan plan_with_defaults(const Request& request, const workload::Model& model,
                                                std::int64_t devices, const hardware::Stack& stack);

// All errors of a plan of this request, and of flags without effect.
[[nodiscard]] std::vector<Diagnostic> problems(const Request& request, const workload::Model& model,
                                               const hardware::Cluster& cluster, const hardware::Stack& stack,
                                               const parallel::Plan& plan);

// The plan of a request. Of what is not given, vpp, schedule, micro-batch, sequence-parallel and recompute are chosen
// by an exact search over just these (open_choices.hpp): the fastest that fits in memory. If nothing fits: the lowest
// memory. `chosen` lists these choices, each with the cost of the best alternative.
struct ResolvedPlan {
  parallel::Plan plan;
  std::vector<std::string> chosen;  // "micro-batch 1 (2: +3.1 %)"
};
[[nodiscard]] Result<ResolvedPlan> resolve(const Request& request, const workload::Model& model,
                                           const hardware::Cluster& cluster, const hardware::Stack& stack);
// The same with an estimator of this job, which keeps what it has priced.
[[nodiscard]] Result<ResolvedPlan> resolve(const Request& request, const workload::Model& model,
                                           const hardware::Cluster& cluster, const hardware::Stack& stack,
                                           Estimator& estimator);

}  // namespace orrery::estimate

namespace orrery::config {

template <>
struct EnumNames<estimate::Semantics> {
  using S = estimate::Semantics;
  static constexpr std::array<std::pair<S, std::string_view>, 2> value{
      {{S::physical, "physical"}, {S::mad_max, "mad-max"}}};
};

}  // namespace orrery::config
