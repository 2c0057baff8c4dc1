#include "orrery/api/fixed_problems.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include "orrery/parallel/plan_fields.hpp"

namespace orrery::api {

using parallel::PartialPlan;
using parallel::Plan;
using parallel::ScheduleKind;

namespace {

// Stages that what is fixed asks for at least.
std::int64_t wanted_stages(const PartialPlan& fixed) {
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
void share_devices(Plan& plan, const PartialPlan& fixed, std::int64_t devices) {
  const bool split = fixed.sequence_parallel.value_or(false) ||
                     fixed.tp_overlap.value_or(parallel::TpOverlap::none) != parallel::TpOverlap::none;
  plan.tp = fixed.tp.value_or(split && devices % 2 == 0 ? 2 : 1);
  plan.cp = fixed.cp.value_or(1);
  const std::int64_t dp = fixed.dp.value_or(1), stages = devices_over(devices, {plan.tp, plan.cp, dp});
  const bool divides = devices_over(devices, {stages, plan.tp, plan.cp}) == dp && devices % stages == 0;
  const std::int64_t wanted = std::min(wanted_stages(fixed), stages);
  plan.pp = fixed.pp.value_or(!fixed.dp ? wanted : divides ? stages : 1);
  plan.dp = fixed.dp.value_or(devices_over(devices, {plan.tp, plan.cp, plan.pp}));
}

// The plan that stands for a space without points: what is fixed, and beside it the least that it asks of the others.
Plan plan_around(const PartialPlan& fixed, const Inputs& inputs, bool serves) {
  Plan plan = parallel::whole_plan(fixed);
  share_devices(plan, fixed, inputs.cluster.devices);
  if (!fixed.vpp) { plan.vpp = fixed.schedule == ScheduleKind::interleaved ? 2 : 1; }
  if (!fixed.schedule) { plan.schedule = plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b; }
  const bool needs_split = inputs.model.has_experts() || plan.tp_overlap != parallel::TpOverlap::none;
  if (!fixed.sequence_parallel) { plan.sequence_parallel = plan.tp > 1 && needs_split; }
  if (!fixed.zero) { plan.zero = plan.shard > 0 && !serves ? 1 : 0; }
  const bool is_open = !parallel::fixed_value(parallel::PlanField::table_sharding, fixed);
  if (inputs.model.is_recommender() && is_open) { plan.tables.sharding = workload::TableSharding::row; }
  return plan;
}

// Flags of what is fixed.
std::set<std::string> flags_that_fix(const PartialPlan& fixed) {
  std::set<std::string> flags;
  for (const auto& choice : parallel::plan_choices()) {
    const bool is_fixed = std::any_of(choice.parts.begin(), choice.parts.end(), [&](const auto& part) {
      return parallel::fixed_value(part.field, fixed).has_value();
    });
    if (is_fixed) { flags.insert(parallel::flag_of(choice)); }
  }
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

}  // namespace

std::vector<Diagnostic> problems_of(const PartialPlan& fixed, const Inputs& inputs, const parallel::Job& job) {
  const auto flags = flags_that_fix(fixed);
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

}  // namespace orrery::api
