#include "orrery/estimate/request.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::config {

template <>
struct EnumNames<hardware::Precision> {
  using P = hardware::Precision;
  static constexpr std::array<std::pair<P, std::string_view>, 6> value{
      {{P::bf16, "bf16"}, {P::fp16, "fp16"}, {P::fp8, "fp8"}, {P::fp4, "fp4"}, {P::tf32, "tf32"}, {P::fp32, "fp32"}}};
};

template <>
struct EnumNames<estimate::TaskChoice> {
  using T = estimate::TaskChoice;
  static constexpr std::array<std::pair<T, std::string_view>, 3> value{
      {{T::pretrain, "pretrain"}, {T::finetune, "finetune"}, {T::inference, "inference"}}};
};

template <>
struct EnumNames<estimate::ScheduleChoice> {
  using S = estimate::ScheduleChoice;
  static constexpr std::array<std::pair<S, std::string_view>, 5> value{{{S::gpipe, "gpipe"},
                                                                        {S::one_f_one_b, "1f1b"},
                                                                        {S::interleaved, "interleaved"},
                                                                        {S::zero_bubble, "zero-bubble"},
                                                                        {S::dualpipe, "dualpipe"}}};
};

template <>
struct EnumNames<estimate::TpOverlap> {
  using O = estimate::TpOverlap;
  static constexpr std::array<std::pair<O, std::string_view>, 3> value{
      {{O::none, "none"}, {O::ring, "ring"}, {O::pipe, "pipe"}}};
};

template <>
struct EnumNames<estimate::Semantics> {
  using S = estimate::Semantics;
  static constexpr std::array<std::pair<S, std::string_view>, 2> value{
      {{S::physical, "physical"}, {S::mad_max, "mad-max"}}};
};

}  // namespace orrery::config

namespace orrery::estimate {

namespace {

constexpr std::int64_t kMostDevices = 100'000'000;
constexpr std::int64_t kLongestSequence = 1'000'000'000;
constexpr std::int64_t kLargestBatch = 1'000'000'000;

void add_job_fields(config::Record<Request>& record) {
  record
      .required("model", &Request::model, "catalogue name, Hugging Face config.json, or Orrery model YAML",
                {.nonempty = true})
      .required("cluster", &Request::cluster, "catalogue name, or cluster YAML", {.nonempty = true})
      .optional("devices", &Request::devices, "accelerators in use; 0: as many as the cluster description has",
                {.min = 0, .max = kMostDevices})
      .optional("stack", &Request::stack, "software-stack profile, by name or YAML", {.nonempty = true})
      .optional("semantics", &Request::semantics, "whose arithmetic")
      .optional("task", &Request::task, "what the job does")
      .required("global_batch", &Request::global_batch, "sequences per step, all replicas together",
                {.min = 1, .max = kLargestBatch})
      .required("seq", &Request::seq, "tokens per sequence", {.min = 1, .max = kLongestSequence})
      .optional("precision", &Request::precision, "number format of matrix inputs");
}

void add_plan_fields(config::Record<Request>& record) {
  const auto degree = config::Bounds<std::int64_t>{.min = 1, .max = kMostDevices};
  const auto open_degree = config::Bounds<std::optional<std::int64_t>>{.min = 1, .max = kMostDevices};
  record.optional("tp", &Request::tp, "tensor-parallel degree", degree)
      .optional("cp", &Request::cp, "context-parallel degree", degree)
      .optional("pp", &Request::pp, "pipeline stages", degree)
      .optional("ep", &Request::ep, "expert-parallel degree", degree)
      .optional("etp", &Request::etp, "tensor-parallel degree of experts", degree)
      .optional("dp", &Request::dp, "data-parallel replicas; open: devices / (tp x cp x pp)", open_degree)
      .optional("vpp", &Request::vpp, "model chunks per pipeline stage (interleaving)", degree)
      .optional("micro_batch", &Request::micro_batch,
                "sequences per micro-batch of a replica; open: the largest that fits, up to 8", open_degree)
      .optional("sequence_parallel", &Request::sequence_parallel,
                "split norms, dropouts and residuals along the sequence over tp")
      .optional("zero", &Request::zero, "sharded over dp: 0 nothing, 1 optimizer, 2 + gradients, 3 + weights (FSDP)",
                {.min = 0, .max = 3})
      .optional("recompute", &Request::recompute, "activations run again in backward; open: the least that fits")
      .optional("schedule", &Request::schedule, "pipeline schedule; open: 1f1b, or interleaved when vpp > 1")
      .optional("tp_overlap", &Request::tp_overlap, "tensor-parallel communication beside its products")
      .optional("dp_overlap", &Request::dp_overlap,
                "data-parallel communication beside forward and backward; open: the stack's habit")
      .optional("offload", &Request::offload, "what lives in a second memory tier: weights,activations,optimizer")
      .optional("placement", &Request::placement, "groups pinned to network dimensions, \"tp=0 pp=1 dp=1\"")
      .optional("strategy", &Request::strategy, "hierarchical strategy per layer class, \"mlp=(tp,ddp)\"")
      .optional("local_batch", &Request::local_batch, "batch per device and layer class, \"mlp=512\"");
}

}  // namespace

const config::Record<Request>& request_record() {
  static const auto record = [] {
    config::Record<Request> fields("estimate", "One training step of a model on a cluster under a parallel plan.");
    add_job_fields(fields);
    add_plan_fields(fields);
    return fields;
  }();
  return record;
}

std::vector<Diagnostic> not_built(const Request& request) {
  std::vector<Diagnostic> found;
  const auto note = [&](bool asked, const char* flag, std::string_view value) {
    if (asked) {
      found.push_back({{"", 0, 0, flag}, fmt::format("{} is not built yet", value.empty() ? "this" : value)});
    }
  };
  note(request.semantics == Semantics::mad_max, "--semantics", "\"mad-max\"");
  note(request.task != TaskChoice::pretrain, "--task", quoted(config::enum_name(request.task)));
  note(request.cp > 1, "--cp", "context parallelism");
  note(request.ep > 1, "--ep", "expert parallelism");
  note(request.etp > 1, "--etp", "tensor parallelism of experts");
  note(request.tp_overlap != TpOverlap::none, "--tp-overlap", quoted(config::enum_name(request.tp_overlap)));
  const bool planned = request.schedule == ScheduleChoice::zero_bubble || request.schedule == ScheduleChoice::dualpipe;
  note(planned, "--schedule", planned ? quoted(config::enum_name(*request.schedule)) : "");
  note(!request.offload.empty(), "--offload", "");
  note(!request.placement.empty(), "--placement", "");
  note(!request.strategy.empty(), "--strategy", "");
  note(!request.local_batch.empty(), "--local-batch", "");
  return found;
}

parallel::Job job_of(const Request& request) {
  return {request.global_batch, request.seq, request.precision, parallel::Task::pretrain, {}, 0, 0};
}

namespace {

parallel::ScheduleKind schedule_of(const Request& request) {
  if (!request.schedule) {
    return request.vpp > 1 ? parallel::ScheduleKind::interleaved : parallel::ScheduleKind::one_f_one_b;
  }
  switch (*request.schedule) {
    case ScheduleChoice::gpipe: return parallel::ScheduleKind::gpipe;
    case ScheduleChoice::one_f_one_b: return parallel::ScheduleKind::one_f_one_b;
    case ScheduleChoice::interleaved: return parallel::ScheduleKind::interleaved;
    case ScheduleChoice::zero_bubble:
    case ScheduleChoice::dualpipe: break;
  }
  throw_internal_error("a schedule that is built", __FILE__, __LINE__);
}

// Tries recompute choices from least to most, and micro-batches from large to small, until one fits.
class Settling {
 public:
  Settling(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
           const hardware::Stack& stack, parallel::Plan plan)
      : request_(request),
        model_(model),
        job_(job_of(request)),
        devices_(cluster.devices),
        estimator_(model, cluster, stack, job_),
        plan_(plan) {}

  // True when a choice was found that fits; otherwise plan() is the one that needs least.
  bool run() {
    for (const auto recompute : recompute_choices()) {
      for (const std::int64_t micro_batch : micro_batch_choices()) {
        plan_.recompute = recompute;
        plan_.micro_batch = micro_batch;
        if (!parallel::is_valid(model_, job_, plan_, devices_)) { continue; }
        if (estimator_.memory(plan_).fits) { return true; }
      }
    }
    plan_.recompute = request_.recompute.value_or(parallel::Recompute::full);
    plan_.micro_batch = request_.micro_batch.value_or(1);
    return false;
  }

  [[nodiscard]] const parallel::Plan& plan() const { return plan_; }

 private:
  [[nodiscard]] std::vector<parallel::Recompute> recompute_choices() const {
    if (request_.recompute) { return {*request_.recompute}; }
    return {parallel::Recompute::none, parallel::Recompute::selective, parallel::Recompute::full};
  }

  [[nodiscard]] std::vector<std::int64_t> micro_batch_choices() const {
    if (request_.micro_batch) { return {*request_.micro_batch}; }
    return {8, 7, 6, 5, 4, 3, 2, 1};  // those that do not divide the batch are not valid plans
  }

  const Request& request_;
  const workload::Model& model_;
  parallel::Job job_;
  std::int64_t devices_;
  Estimator estimator_;
  parallel::Plan plan_;
};

std::string why_this_micro_batch(const Request& request, const parallel::Plan& plan, bool fits) {
  if (!fits) { return "nothing fits"; }
  const std::int64_t count = parallel::micro_batches(job_of(request), plan);
  const bool starved = count < plan.pp && plan.micro_batch > 1;
  return starved ? fmt::format(
                       "the largest that fits, up to 8; but {} of them leave {} stages idle most of the time: "
                       "try --micro-batch 1",
                       count, plan.pp)
                 : "the largest that fits, up to 8";
}

std::vector<std::string> chosen_fields(const Request& request, const parallel::Plan& plan, bool fits) {
  std::vector<std::string> chosen;
  if (!request.dp) { chosen.push_back(fmt::format("dp {} (devices / (tp x pp))", plan.dp)); }
  if (!request.recompute) {
    chosen.push_back(fmt::format("recompute {} ({})", config::enum_name(plan.recompute),
                                 fits ? "the least that fits" : "nothing fits"));
  }
  if (!request.micro_batch) {
    chosen.push_back(fmt::format("micro-batch {} ({})", plan.micro_batch, why_this_micro_batch(request, plan, fits)));
  }
  if (!request.schedule) { chosen.push_back(fmt::format("schedule {}", config::enum_name(plan.schedule))); }
  if (!request.dp_overlap) {
    chosen.push_back(fmt::format("dp-overlap {} (the stack's habit)", plan.dp_overlap ? "on" : "off"));
  }
  return chosen;
}

}  // namespace

Result<SettledPlan> settle(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
                           const hardware::Stack& stack) {
  parallel::Plan plan;
  plan.tp = request.tp;
  plan.pp = request.pp;
  plan.vpp = request.vpp;
  plan.dp = request.dp.value_or(
      std::max<std::int64_t>(1, cluster.devices / std::max<std::int64_t>(1, request.tp * request.pp)));
  plan.sequence_parallel = request.sequence_parallel;
  plan.zero = request.zero;
  plan.schedule = schedule_of(request);
  plan.dp_overlap = request.dp_overlap.value_or(stack.overlap_gradient_reduce);
  plan.micro_batch = request.micro_batch.value_or(1);
  plan.recompute = request.recompute.value_or(parallel::Recompute::none);
  if (auto found = parallel::problems(model, job_of(request), plan, cluster.devices); !found.empty()) {
    return tl::make_unexpected(Failure{std::move(found)});
  }
  Settling settling(request, model, cluster, stack, plan);
  const bool fits = settling.run();
  return SettledPlan{settling.plan(), chosen_fields(request, settling.plan(), fits)};
}

}  // namespace orrery::estimate
