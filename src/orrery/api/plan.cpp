// The question of `orrery plan`: a space of plans, searched, its best estimated and explained.
#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "orrery/api/explanation.hpp"
#include "orrery/api/held.hpp"
#include "orrery/api/inputs.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/neighbours.hpp"
#include "orrery/explore/search.hpp"

namespace orrery::api {

using estimate::Estimator;
using explore::Fixed;
using parallel::Plan;
using parallel::ScheduleKind;

namespace {

class PlanEvaluator final : public explore::Evaluator {
 public:
  PlanEvaluator(const Inputs& inputs, const parallel::Job& job)
      : estimator_(inputs.model, inputs.cluster, inputs.stack, job) {}

  Seconds bound(const Plan& plan) override { return estimator_.step_time_bound(plan); }
  std::optional<Seconds> step_time(const Plan& plan) override { return estimator_.feasible_step_time(plan); }
  Seconds unlimited_step_time(const Plan& plan) override { return estimator_.step_time(plan); }

 private:
  Estimator estimator_;
};

// Stages that what is fixed asks for at least.
std::int64_t wanted_stages(const Fixed& fixed) {
  const auto schedule = fixed.schedule.value_or(ScheduleKind::one_f_one_b);
  const bool several = fixed.vpp.value_or(1) > 1 || fixed.first_stage_layers > 0 || fixed.last_stage_layers > 0 ||
                       (schedule != ScheduleKind::one_f_one_b && schedule != ScheduleKind::gpipe);
  return several ? 2 : 1;
}

// Devices over degrees that may be whatever a user typed: rounded down, at least 1.
std::int64_t devices_over(std::int64_t devices, std::initializer_list<std::int64_t> degrees) {
  for (const std::int64_t degree : degrees) { devices = degree >= 1 && degree <= devices ? devices / degree : 1; }
  return devices;
}

// Degrees of the plan that stands for a space without points.
void share_devices(Plan& plan, const Fixed& fixed, std::int64_t devices) {
  const bool split = fixed.sequence_parallel.value_or(false) || fixed.tp_overlap != parallel::TpOverlap::none;
  plan.tp = fixed.tp.value_or(split && devices % 2 == 0 ? 2 : 1);
  plan.cp = fixed.cp.value_or(1);
  const std::int64_t dp = fixed.dp.value_or(1), stages = devices_over(devices, {plan.tp, plan.cp, dp});
  const bool divides = devices_over(devices, {stages, plan.tp, plan.cp}) == dp && devices % stages == 0;
  const std::int64_t wanted = std::min(wanted_stages(fixed), stages);
  plan.pp = fixed.pp.value_or(!fixed.dp ? wanted : divides ? stages : 1);
  plan.dp = fixed.dp.value_or(devices_over(devices, {plan.tp, plan.cp, plan.pp}));
}

// The plan that stands for a space without points: what is fixed, and beside it the least that it asks of the others.
Plan plan_around(const Fixed& fixed, const Inputs& inputs, bool serves) {
  Plan plan;
  share_devices(plan, fixed, inputs.cluster.devices);
  plan.ep = fixed.ep.value_or(1);
  plan.etp = fixed.etp.value_or(1);
  const bool interleaved = fixed.schedule == ScheduleKind::interleaved;
  plan.vpp = fixed.vpp.value_or(interleaved ? 2 : 1);
  plan.schedule = fixed.schedule.value_or(plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b);
  plan.micro_batch = fixed.micro_batch.value_or(1);
  plan.cp_method = fixed.cp_method.value_or(workload::ContextMethod::ring);
  plan.tp_overlap = fixed.tp_overlap;
  const bool needs_split = inputs.model.has_experts() || plan.tp_overlap != parallel::TpOverlap::none;
  plan.sequence_parallel = fixed.sequence_parallel.value_or(plan.tp > 1 && needs_split);
  plan.shard = fixed.shard;
  plan.zero = fixed.zero.value_or(plan.shard > 0 && !serves ? 1 : 0);
  plan.recompute = fixed.recompute.value_or(parallel::Recompute::none);
  plan.offload = fixed.offload;
  plan.first_stage_layers = fixed.first_stage_layers;
  plan.last_stage_layers = fixed.last_stage_layers;
  plan.embedding_as_layer = fixed.embedding_as_layer;
  plan.head_as_layer = fixed.head_as_layer;
  return plan;
}

// Flags of what is fixed.
std::set<std::string> flags_of(const Fixed& fixed) {
  std::set<std::string> flags;
  const auto add = [&](bool is_fixed, const char* flag) {
    if (is_fixed) { flags.insert(flag); }
  };
  add(fixed.tp.has_value(), "--tp");
  add(fixed.cp.has_value(), "--cp");
  add(fixed.pp.has_value(), "--pp");
  add(fixed.ep.has_value(), "--ep");
  add(fixed.etp.has_value(), "--etp");
  add(fixed.dp.has_value(), "--dp");
  add(fixed.vpp.has_value(), "--vpp");
  add(fixed.micro_batch.has_value(), "--micro-batch");
  add(fixed.sequence_parallel.has_value(), "--sequence-parallel");
  add(fixed.zero.has_value(), "--zero");
  add(fixed.recompute.has_value(), "--recompute");
  add(fixed.schedule.has_value(), "--schedule");
  add(fixed.cp_method.has_value(), "--cp-method");
  add(fixed.tp_overlap != parallel::TpOverlap::none, "--tp-overlap");
  add(fixed.shard > 0, "--shard");
  add(fixed.offload.any(), "--offload");
  add(fixed.first_stage_layers > 0, "--first-stage-layers");
  add(fixed.last_stage_layers > 0, "--last-stage-layers");
  add(fixed.embedding_as_layer, "--embedding-as-layer");
  add(fixed.head_as_layer, "--head-as-layer");
  return flags;
}

// The flag to blame for what is wrong with `flag`: itself where it is fixed, else one that it follows from.
std::string blamed(const std::string& flag, const std::set<std::string>& fixed) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> follows = {
      {"--dp", {"--pp", "--cp", "--tp"}},
      {"--schedule", {"--vpp"}},
      {"--vpp", {"--schedule", "--pp"}},
      {"--cp", {"--cp-method"}},
      {"--pp", {"--schedule", "--dp", "--embedding-as-layer", "--head-as-layer"}},
      {"--sequence-parallel", {"--tp-overlap", "--tp"}},
      {"--tp", {"--sequence-parallel", "--tp-overlap"}},
  };
  if (fixed.contains(flag)) { return flag; }
  for (const auto& [open, sources] : follows) {
    if (open != flag) { continue; }
    const auto source = std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return fixed.contains(s); });
    if (source != sources.end()) { return *source; }
  }
  return "";
}

// What makes fixed values impossible; nothing where they are not to blame, such as for a batch that suits no plan.
std::vector<Diagnostic> problems_of(const Fixed& fixed, const Inputs& inputs, const parallel::Job& job) {
  const auto flags = flags_of(fixed);
  if (flags.empty()) { return {}; }
  const Plan plan = plan_around(fixed, inputs, job.is_inference());
  auto found = parallel::problems(inputs.model, job, plan, inputs.cluster.devices);
  for (auto& problem : parallel::problems(inputs.cluster, plan)) { found.push_back(std::move(problem)); }
  const bool dp_is_fixed = fixed.dp || (fixed.tp && fixed.pp);
  std::vector<Diagnostic> blame;
  for (auto& diagnostic : found) {
    auto& flag = diagnostic.place.path;
    const bool of_batch = flag == "--global-batch" || flag == "--batch";
    if (!of_batch) { flag = blamed(flag, flags); }
    if (of_batch ? !dp_is_fixed : flag.empty()) { continue; }
    blame.push_back(std::move(diagnostic));
  }
  return blame;
}

std::string why_nothing_fits(const results::SpaceCounts& space, const Inputs& inputs,
                             const std::vector<std::string>& held) {
  std::string why =
      space.points == 0
          ? "no plan is valid: the degrees must multiply to the devices and divide heads and batch"
          : fmt::format("none of {} plans fits in the memory of {}", space.evaluated, inputs.cluster.accelerator.name);
  if (!held.empty()) { why += "; held, not searched: " + join(held, "; "); }
  return fmt::format("{} on {} devices of {}: {}", inputs.model.name, inputs.cluster.devices, inputs.cluster.name, why);
}

// The winner under a schedule that the space holds only when it is asked to; the micro-batch follows. Nothing where no
// micro-batch of the space suits.
std::optional<Plan> under_schedule(ScheduleKind schedule, const Plan& best, const std::vector<Plan>& space,
                                   const Inputs& inputs, const parallel::Job& job, PlanEvaluator& evaluator) {
  std::vector<Plan> plans;
  for (const Plan& other : space) {
    Plan plan = best;
    plan.micro_batch = other.micro_batch;
    plan.vpp = other.vpp;
    plan.schedule = other.schedule;
    if (!(plan == other)) { continue; }
    plan.vpp = 1;
    plan.schedule = schedule;
    const bool is_new = std::find(plans.begin(), plans.end(), plan) == plans.end();
    if (is_new && parallel::is_valid(inputs.model, job, plan, inputs.cluster.devices)) { plans.push_back(plan); }
  }
  if (plans.empty()) { return std::nullopt; }
  return explore::fastest(plans, evaluator).plan;
}

// Plans one step away from the winner, and the schedules that a space holds only when it is asked to.
std::vector<Alternative> alternatives_to(const Plan& best, const std::vector<Plan>& space, const Inputs& inputs,
                                         const parallel::Job& job, bool schedule_is_fixed) {
  Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  PlanEvaluator evaluator(inputs, job);
  std::vector<Alternative> alternatives;
  for (const auto& [axis, found] : explore::neighbours(space, best, evaluator)) {
    alternatives.push_back({axis, estimator.estimate(found.plan), {}, true});
    if (found.beyond_memory) { alternatives.back().beyond_memory = estimator.estimate(*found.beyond_memory); }
  }
  if (job.is_inference() || schedule_is_fixed || best.pp == 1) { return alternatives; }
  for (const auto schedule : {ScheduleKind::zero_bubble, ScheduleKind::dualpipe}) {
    const auto plan = under_schedule(schedule, best, space, inputs, job, evaluator);
    if (plan) { alternatives.push_back({"schedule", estimator.estimate(*plan), {}, false}); }
  }
  return alternatives;
}

}  // namespace

Result<results::PlanSearch> Orrery::plan(const PlanRequest& request) const {
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, request.job));
  const parallel::Job job = estimate::job_of(request.job, inputs.model);
  if (auto wrong = parallel::problems(inputs.model, job); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  const auto space =
      explore::enumerate(inputs.model, job, inputs.cluster, request.fixed, inputs.stack.overlap_gradient_reduce);
  if (space.empty()) {
    if (auto wrong = problems_of(request.fixed, inputs, job); !wrong.empty()) {
      return tl::make_unexpected(Failure{std::move(wrong)});
    }
  }
  const auto found = explore::search(space, [&] { return std::make_unique<PlanEvaluator>(inputs, job); },
                                     {request.top, request.exhaustive, request.threads, request.progress});

  results::PlanSearch answer;
  answer.space = found.space;
  answer.held = held(inputs, job, request.fixed, space);
  if (found.best.empty()) {
    answer.nothing_fits = why_nothing_fits(found.space, inputs, answer.held);
    return answer;
  }
  Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  for (const auto& candidate : found.best) { answer.best.push_back(estimator.estimate(candidate.plan)); }
  if (request.explain) {
    const auto alternatives =
        alternatives_to(found.best.front().plan, space, inputs, job, request.fixed.schedule.has_value());
    answer.explanation = explanation(answer.best, alternatives);
  }
  return answer;
}

}  // namespace orrery::api
